"""Loads model folders with transformers and measures them: python transformers_loads.py FOLDER[:IDS.json] ...

Beside a folder an array of token ids can be named; its perplexity (one window) is then printed, to be held against
`npm run --silent amalgam -- evaluate FOLDER --tokens IDS.json`. Exit code 1 when a tensor is missing, unexpected or of
another shape. Needs torch and transformers.
"""
import json
import math
import sys

import torch
from transformers import AutoModelForCausalLM

failed = False
for argument in sys.argv[1:]:
    folder, _, ids_file = argument.partition(":")
    model, info = AutoModelForCausalLM.from_pretrained(
        folder, output_loading_info=True, dtype=torch.float32, attn_implementation="eager"
    )
    wrong = {key: value for key, value in info.items() if value}
    failed = failed or bool(wrong)
    line = f"{folder}: {model.config.num_hidden_layers} layers, {wrong or 'every tensor in its place'}"
    if ids_file:
        ids = torch.tensor(json.load(open(ids_file)))
        with torch.no_grad():
            logits = model(ids[None]).logits[0].double()
        losses = -torch.log_softmax(logits, -1)[:-1].gather(1, ids[1:, None])
        line += f", perplexity {math.exp(losses.mean().item()):.7g}"
    print(line)
sys.exit(1 if failed else 0)
