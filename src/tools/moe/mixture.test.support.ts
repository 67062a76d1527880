/** Tiny dense models, and the mixtures that are written of them. */
import { expect } from 'vitest';
import { parseModelConfig } from '../../formats/model-config';
import { copyOf } from '../../formats/recipe';
import { buildSafetensorsHeader } from '../../formats/safetensors-write';
import { readTensors, values } from '../../forward/golden.test.fixture';
import type { Weights } from '../../forward/oracle';
import { noise, tinyConfig } from '../../gguf/tiny-models.test.support';
import { openModels } from '../../host/models';
import { memoryFolder } from '../../inputs/memory-models.test.support';
import { resolveArchitecture } from '../../models/resolution';
import { planRecipe } from '../../recipe/recipe-jobs';
import { listOutputs, openOutputFile } from '../../write/finished-outputs';
import { jobs } from './job';
import { parseMoeRecipe } from './recipe';
import type { MoeReport, MoeRequest } from './report';

const LETTERS = [...'abcdefghijklmnopqrstuvwxyz'];
export const vocab = [
  '<s>',
  ...LETTERS,
  'Ġ',
  ...Array.from({ length: 36 }, (_, i) => `${LETTERS[i % 26]}${i}`),
];
const TOKENIZER = JSON.stringify({
  added_tokens: [
    {
      id: 0,
      content: '<s>',
      special: true,
      normalized: false,
      lstrip: false,
      rstrip: false,
      single_word: false,
    },
  ],
  pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true },
  decoder: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true },
  model: { type: 'BPE', vocab: Object.fromEntries(vocab.map((token, id) => [token, id])), merges: [] },
});
const SETTINGS = { bos_token: '<s>', tokenizer_class: 'PreTrainedTokenizerFast' };
export const IDS = [0, 5, 9, 20, 2, 13, 7, 7, 12];

/** Dense models of a type, by their seeds: a, b … */
export function denseModels(type: string, more: Record<string, unknown> = {}) {
  const text = tinyConfig(type, { architectures: ['Dense'], torch_dtype: 'float32', ...more });
  const config = parseModelConfig(text, 'config.json');
  const architecture = resolveArchitecture(config);
  return ['base', 'a', 'b'].map((name, i) => {
    const weights = noise(text, 11 * i + 1);
    const stored = [...weights].map(([key, { shape, bytes }]) => ({
      ...{ name: key, dtype: 'F32' as const, shape, byteLength: bytes.length, bytes },
    }));
    const folder = memoryFolder(name, {
      'config.json': text,
      'tokenizer.json': TOKENIZER,
      'tokenizer_config.json': SETTINGS,
      'model.safetensors': Uint8Array.from(
        Buffer.concat([buildSafetensorsHeader(stored, {}), ...stored.map(({ bytes }) => bytes)]),
      ),
    });
    const f64: Weights = (key) => values(weights.get(key)!);
    return { folder, architecture, weights: f64 };
  });
}

export type Dense = ReturnType<typeof denseModels>;

let outputs = 0;

/** Writes the mixture of a recipe. */
export async function write(
  dense: Dense,
  recipe: string,
  request: Partial<MoeRequest> = {},
  stop?: AbortController,
) {
  const models = openModels(() => ({ url: 'https://hub.invalid' }));
  for (const { folder } of dense) await models.add(folder);
  const parsed = parseMoeRecipe(recipe);
  expect(parsed.problems).toEqual([]);
  const destination = { kind: 'downloads', name: `mixture-${outputs++}` } as const;
  const form = { gguf: 'none', ggufOnly: false, shardBytes: 1e9 } as const;
  return jobs.writeMoe(
    { recipe: parsed.read!, form, engine: 'cpu', destination, ...request },
    models,
    (stop ?? new AbortController()).signal,
    ({ phase }) => {
      if (phase === 'merging') stop?.abort();
    },
    (model) => planRecipe(copyOf(model), models),
  );
}

/** The mixture of a recipe as it was written. */
export async function written(dense: Dense, recipe: string, request: Partial<MoeRequest> = {}) {
  const report: MoeReport = await write(dense, recipe, request);
  const last =
    request.destination && 'name' in request.destination
      ? request.destination.name
      : `mixture-${outputs - 1}`;
  const { name, files: found } = (await listOutputs()).find((output) => output.name === last)!;
  const files = new Map<string, Uint8Array<ArrayBuffer>>();
  for (const { path } of found) {
    files.set(path, new Uint8Array(await (await openOutputFile(name, path)).arrayBuffer()));
  }
  const json = JSON.parse(new TextDecoder().decode(files.get('config.json'))) as Record<string, unknown>;
  const tensors = readTensors(files.get('model.safetensors')!);
  return { report, files, json, tensors };
}

export const largest = (a: ArrayLike<number>, b: ArrayLike<number>) =>
  Array.from(a).reduce((most, value, i) => Math.max(most, Math.abs(value - b[i]!)), 0);

const EXPERTS = `experts:
  - source_model: a
    positive_prompts: [cab, "b a"]
    negative_prompts: [zoo]
  - source_model: b
    positive_prompts: [wild foxes, quiz]
  - source_model: base
    positive_prompts: [deep]
`;
export const GATES = {
  mixtral: 'model.layers.*.block_sparse_moe.gate.weight',
  other: 'model.layers.*.mlp.gate.weight',
};
export const hidden = (more = '') => `base_model: base\ngate_mode: hidden\n${EXPERTS}${more}`;
export const LLAMA = { attention_bias: false, head_dim: 8 };
