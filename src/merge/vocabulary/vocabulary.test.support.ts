/** Small models with tokenizers and distinguishable values, planned and merged in memory. */
import { createCpuBackend } from '../../backend/cpu/cpu-backend';
import type { Recipe } from '../../formats/recipe';
import { buildSafetensorsHeader } from '../../formats/safetensors-write';
import { memoryFolder, openerOf } from '../../inputs/memory-models.test.support';
import { readingRows } from '../../inputs/row-reader';
import type { TensorRef } from '../../inputs/tensor-view';
import type { ModelFolder } from '../../sources/model-folder';
import { methodById } from '../methods';
import type { Plan } from '../plan/plan';
import { makePlan } from '../plan/recipe-plan';
import { runPlan } from '../run/run';

export const HIDDEN = 3;

export interface TokenFolder {
  /** Tokens of the model itself by id; an empty text is a row without a token. */
  tokens: string[];
  /** Added tokens by text → id. */
  added?: Record<string, number>;
  merges?: string[];
  /** Rows of the embedding; default: one per token. */
  rows?: number;
  /** Name of the embedding; default: Llama's. */
  embedding?: string;
  /** A head of its own, with or without a bias. */
  head?: boolean | 'biased';
  /** Further tensors with a row per token → how many rows they have, by default all. */
  perToken?: Record<string, number | undefined>;
  /** Value of column `column` of the row of `id`, with token `token` where it has one. */
  value?(token: string, column: number, tensor: string, id: number): number;
  tokenizer?: object;
  files?: Record<string, string | object>;
  config?: Record<string, unknown>;
}

/** A value that depends on model, tensor, token and column, exact in bf16 sums of a few. */
export function cellOf(path: string, tensor: string, token: string, column: number): number {
  let hash = 7;
  for (const c of `${path}/${tensor}/${token}/${column}`) hash = (hash * 31 + c.codePointAt(0)!) % 1009;
  return (hash - 504) / 64;
}

/** Token → id of a folder, added tokens included. */
export function idsOf({ tokens, added = {} }: TokenFolder): Map<string, number> {
  const own = tokens.map((token, id) => [token, id] as const).filter(([token]) => token !== '');
  return new Map([...own, ...Object.entries(added)]);
}

export function tokenFolder(path: string, spec: TokenFolder): ModelFolder {
  const ids = idsOf(spec);
  const names = new Map([...ids].map(([token, id]) => [id, token]));
  const rows = spec.rows ?? Math.max(...ids.values()) + 1;
  const value =
    spec.value ?? ((token: string, column: number, tensor: string) => cellOf(path, tensor, token, column));
  const tables = [spec.embedding ?? 'model.embed_tokens.weight', ...(spec.head ? ['lm_head.weight'] : [])];
  const tensors = new Map<string, { shape: number[]; values: number[] }>();
  const add = (name: string, count = rows) => {
    const width = name.endsWith('bias') ? 1 : HIDDEN;
    const values = Array.from({ length: count * width }, (_, i) => {
      const id = Math.floor(i / width);
      return value(names.get(id) ?? `#${id}`, i % width, name, id);
    });
    const flat = name === 'final_logits_bias' ? [1, count] : [count];
    tensors.set(name, { shape: width === 1 ? flat : [count, width], values });
  };
  for (const name of tables) add(name);
  if (spec.head === 'biased') add('lm_head.bias');
  for (const [name, count] of Object.entries(spec.perToken ?? {})) add(name, count);
  tensors.set('model.norm.weight', { shape: [HIDDEN], values: [1, 2, 3] });
  return memoryFolder(path, {
    'config.json': {
      model_type: 'llama',
      hidden_size: HIDDEN,
      num_hidden_layers: 0,
      vocab_size: rows,
      tie_word_embeddings: spec.head === undefined || spec.head === false,
      torch_dtype: 'float32',
      ...spec.config,
    },
    'model.safetensors': floatFile(tensors),
    'tokenizer.json': spec.tokenizer ?? tokenizerJson(spec),
    ...spec.files,
  });
}

export const FLAGS = { single_word: false, lstrip: false, rstrip: false, normalized: false, special: true };

export function tokenizerJson({ tokens, added = {}, merges = [] }: TokenFolder): object {
  return {
    version: '1.0',
    added_tokens: Object.entries(added).map(([content, id]) => ({ ...FLAGS, id, content })),
    normalizer: null,
    pre_tokenizer: null,
    post_processor: null,
    decoder: null,
    model: {
      type: 'BPE',
      vocab: Object.fromEntries(tokens.map((token, id) => [token, id]).filter(([token]) => token !== '')),
      merges,
    },
  };
}

function floatFile(
  tensors: ReadonlyMap<string, { shape: number[]; values: number[] }>,
): Uint8Array<ArrayBuffer> {
  const entries = [...tensors].map(([name, { shape, values }]) => ({
    name,
    dtype: 'F32' as const,
    shape,
    byteLength: values.length * 4,
  }));
  const header = buildSafetensorsHeader(entries, {});
  const data = new Float32Array([...tensors.values()].flatMap(({ values }) => values));
  const file = new Uint8Array(header.length + data.byteLength);
  file.set(header);
  file.set(new Uint8Array(data.buffer), header.length);
  return file;
}

export interface Merged {
  plan: Plan;
  /** Values of every tensor of the output. */
  values: Map<string, Float32Array>;
  /** Texts of the small files that are not copies. */
  texts: Map<string, string>;
}

export const planIn = (recipe: Recipe, ...folders: ModelFolder[]): Promise<Plan> =>
  makePlan(recipe, openerOf(...folders), methodById);

/** Plans and runs a recipe on the typed-array engine. */
export async function mergeIn(
  recipe: Recipe,
  folders: ModelFolder[],
  tileElements?: number,
): Promise<Merged> {
  const plan = await planIn(recipe, ...folders);
  const errors = plan.problems.filter(({ severity }) => severity === 'error');
  if (errors.length > 0) throw new Error(errors.map(({ message }) => message).join('\n'));
  const values = new Map<string, Float32Array>();
  const file = (ref: TensorRef) =>
    folders.find(({ path }) => path === ref.folder)!.files.find(({ path }) => path === ref.file)!;
  await runPlan({
    plan,
    shards: plan.shards,
    engine: createCpuBackend(),
    methods: methodById,
    ...(tileElements === undefined ? {} : { tileElements }),
    read: readingRows((ref, begin, end) =>
      file(ref)
        .open()
        .read(ref.begin + begin, ref.begin + end),
    ),
    openShard: async (shard) => {
      const bytes = new Uint8Array(shard.byteLength - shard.header.length);
      return {
        async write(piece, at) {
          bytes.set(piece, at - shard.header.length);
        },
        async finish() {
          let from = 0;
          for (const { name, byteLength } of shard.tensors) {
            values.set(name, new Float32Array(bytes.slice(from, from + byteLength).buffer));
            from += byteLength;
          }
        },
        abort() {},
      };
    },
  });
  const texts = new Map(
    plan.extras.flatMap(({ path, content }) => ('text' in content ? [[path, content.text]] : [])),
  );
  return { plan, values, texts };
}
