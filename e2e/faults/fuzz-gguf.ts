/** The parsers of GGUF among the targets. */
import { readTokenizerJson } from '../../src/formats/tokenizer-json';
import { ggufFile } from '../../src/gguf/gguf-file';
import { planGguf } from '../../src/gguf/gguf-plan';
import { ggufConfig } from '../../src/gguf/read-config';
import { readGgufHeader } from '../../src/gguf/read-header';
import { ggufTokenizerTexts } from '../../src/gguf/read-tokenizer';
import { BYTE_TOKENS, ggufTokenizer } from '../../src/gguf/tokenizer';
import { byteLevelTokenizer, thinModel } from '../../src/gguf/tokenizer.test.support';

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

/** Bytes behind a header. */
const GGUF_DATA = 2 ** 20;

/** The header of a thin llama. */
function ggufSeed(): Uint8Array<ArrayBuffer> {
  const plan = planGguf({
    ...{ type: 'F32', name: 'm', ...thinModel(40) },
    tokenizer: { tokenizer: byteLevelTokenizer(40) },
  });
  return ggufFile('m.gguf', plan, [...plan.tensors.keys()]).header;
}

export const ggufTargets = [
  {
    name: 'GGUF tokenizer',
    seeds: [
      '{"added_tokens":[{"id":2,"content":"<s>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}],"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true},"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":3},"merges":["a b"]}}',
      JSON.stringify({
        added_tokens: [],
        post_processor: {
          type: 'TemplateProcessing',
          single: [{ SpecialToken: { id: 'ab', type_id: 0 } }, { Sequence: { id: 'A', type_id: 0 } }],
          pair: [],
          special_tokens: { ab: { id: 'ab', ids: [2], tokens: ['ab'] } },
        },
        model: {
          ...{ type: 'BPE', byte_fallback: true, merges: [['a', 'b']] },
          vocab: Object.fromEntries(['a', 'b', 'ab', ...BYTE_TOKENS].map((token, id) => [token, id])),
        },
      }),
    ],
    runs: 100_000,
    parse(bytes: Uint8Array<ArrayBuffer>) {
      const metadata = new Map(ggufTokenizer({ tokenizer: text(bytes) }, 260, new Map(), 'm').metadata);
      const tokens = metadata.get('tokenizer.ggml.tokens');
      return tokens?.type === 'array' && tokens.values.length === 260
        ? undefined
        : 'not a token for every row';
    },
  },
  {
    name: 'GGUF header',
    seeds: [ggufSeed()],
    runs: 100_000,
    async parse(bytes: Uint8Array<ArrayBuffer>) {
      const byteLength = bytes.length + GGUF_DATA;
      const read = async (begin: number, end: number) => {
        const piece = new Uint8Array(end - begin);
        piece.set(bytes.subarray(begin, end));
        return piece;
      };
      const { metadata, tensors } = await readGgufHeader({ byteLength, read }, 'm.gguf');
      const inOrder = tensors.toSorted((a, b) => a.begin - b.begin);
      const wrong = inOrder.find(
        ({ begin, end }, i) => begin >= end || end > byteLength || begin < (inOrder[i - 1]?.end ?? 0),
      );
      if (wrong) return `${wrong.name} lies where no tensor can`;
      const byName = new Map(tensors.map((tensor) => [tensor.name, tensor]));
      const model = { fileName: 'm.gguf', metadata, tensors: byName, factors: new Map() };
      const { config } = ggufConfig(model);
      readTokenizerJson(ggufTokenizerTexts(model).tokenizer, 't');
      return config.layers === metadata.get('llama.block_count') ? undefined : 'another number of layers';
    },
  },
];
