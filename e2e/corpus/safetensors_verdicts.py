"""
Fills in what the reference implementation says of every case in safetensors.json: `pip install safetensors==0.8.0`, then
`python e2e/corpus/safetensors_verdicts.py`. The rules are those of `read_metadata` and `Metadata::validate` in
huggingface/safetensors, `safetensors/src/tensor.rs`.
"""

import json
import pathlib
import struct

import safetensors

path = pathlib.Path(__file__).with_name("safetensors.json")
corpus = json.loads(path.read_text("utf-8"))


def file_of(case):
    """8 bytes of length, the header with `pad` spaces behind it, `data` zero bytes; `hex` is a whole file."""
    if "hex" in case:
        return bytes.fromhex(case["hex"])
    header = case["header"].encode("utf-8") + b" " * case.get("pad", 0)
    return struct.pack("<Q", int(case.get("length", len(header)))) + header + bytes(case.get("data", 0))


for case in corpus["cases"]:
    try:
        safetensors.deserialize(file_of(case))
        case["reference"] = "accepts"
    except safetensors.SafetensorError as error:
        case["reference"] = str(error).split(": ", 1)[-1][:120]
corpus["version"] = safetensors.__version__
path.write_text(json.dumps(corpus, indent=1, ensure_ascii=True) + "\n", "utf-8")
