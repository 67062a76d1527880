/**
 * Sentence embeddings as sentence-transformers 6 makes them of the files beside a model: modules.json, the pooling, dense layers and
 * the norm behind it (their `modules/*.py`), prompts and the similarity (config_sentence_transformers.json).
 */
import { ACTIVATIONS } from '../backend/special';
import { AmalgamError } from '../errors';
import type { GuardedTokenizer } from '../foreign/foreign-text';
import { displayName } from '../formats/names';
import { parseJson, parseJsonObject } from '../formats/strict-json';
import type { RunningModel } from './running-model';

/** Of a text: what it is for, which decides its prompt. */
export type TextRole = 'query' | 'document' | 'text';

export interface RoledText {
  text: string;
  role: TextRole;
}

export interface Embedder {
  /** How, in words: `mean of the tokens, 256 of 384 dimensions, normed`. */
  words: string;
  /** Ids of every text with its prompt, and how many of them the pooling leaves out. */
  encode(texts: readonly RoledText[]): Promise<{ ids: number[]; left: number }[]>;
  pooled(count: number, left: number): Pooled;
  /** Larger is more alike. */
  similarity(a: Float64Array, b: Float64Array): number;
}

/** Takes the rows of a sequence in any pieces, in their order. */
export interface Pooled {
  add(row: Float32Array, position: number): void;
  /** The embedding of the sequence, or its score alone. */
  end(): Vector;
}

/** A file of the model; undefined where it has none. */
export type ReadFile = (path: string) => Promise<Uint8Array<ArrayBuffer> | undefined>;

type Json = Record<string, unknown>;
export type Vector = Float64Array<ArrayBuffer>;
type Layer = (x: Vector) => Vector;

/** Weight of a row by its position, and what the sum is divided by. */
const POOLINGS: Readonly<
  Record<
    string,
    { words: string; weight(at: number, count: number, left: number): number; divisor(sum: number): number }
  >
> = {
  cls: { words: 'the first token', weight: (at, _, left) => (at === left ? 1 : 0), divisor: () => 1 },
  mean: { words: 'the mean of the tokens', weight: () => 1, divisor: (sum) => sum },
  mean_sqrt_len_tokens: { words: 'the scaled sum of the tokens', weight: () => 1, divisor: Math.sqrt },
  weightedmean: { words: 'the weighted mean of the tokens', weight: (at) => at + 1, divisor: (sum) => sum },
  lasttoken: { words: 'the last token', weight: (at, count) => (at === count - 1 ? 1 : 0), divisor: () => 1 },
};

/** Keys of before version 6, in the order in which several are joined. */
const OLD_MODES: readonly (readonly [key: string, mode: string])[] = [
  ['pooling_mode_cls_token', 'cls'],
  ['pooling_mode_max_tokens', 'max'],
  ['pooling_mode_mean_tokens', 'mean'],
  ['pooling_mode_mean_sqrt_len_tokens', 'mean_sqrt_len_tokens'],
  ['pooling_mode_weightedmean_tokens', 'weightedmean'],
  ['pooling_mode_lasttoken', 'lasttoken'],
];

const dot = (a: Float64Array, b: Float64Array) => a.reduce((sum, x, i) => sum + x * b[i]!, 0);
const apart = (a: Float64Array, b: Float64Array, size: (d: number) => number) =>
  a.reduce((sum, x, i) => sum + size(x - b[i]!), 0);

const SIMILARITIES: Readonly<Record<string, (a: Float64Array, b: Float64Array) => number>> = {
  cosine: (a, b) => dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b)),
  dot,
  euclidean: (a, b) => -Math.sqrt(apart(a, b, (d) => d * d)),
  manhattan: (a, b) => -apart(a, b, Math.abs),
};

/** Names of prompts by what a text is for, the first that a model has. */
const PROMPTS: Readonly<Record<TextRole, readonly string[]>> = {
  query: ['query'],
  document: ['document', 'passage', 'corpus'],
  text: [],
};

/**
 * @param read a file of the model
 * @param tensor a tensor of it, those of modules included
 * @param most tokens of a text, where the files name no fewer
 * @throws AmalgamError `ArchitectureUnsupported` for a module that is not known, `ConfigInvalid`
 */
export async function openEmbedder(
  read: ReadFile,
  tensor: RunningModel['tensor'],
  tokenizer: Pick<GuardedTokenizer, 'prefix' | 'suffix' | 'encodeAll'>,
  hidden: number,
  most: number,
): Promise<Embedder> {
  const json = async (path: string): Promise<Json> => {
    const bytes = await read(path);
    return bytes ? parseJsonObject(new TextDecoder().decode(bytes), path) : {};
  };
  const listed = await read('modules.json');
  // without them sentence-transformers takes the mean
  const modules = listed ? modulesOf(parseJson(new TextDecoder().decode(listed), 'modules.json')) : [];
  let pooling: Json = { pooling_mode: 'mean' };
  let body = '';
  const layers: Layer[] = [];
  const words: string[] = [];
  let width = 0;
  for (const { type, path } of modules) {
    const config = `${path === '' ? '' : `${path}/`}config.json`;
    if (type === 'Transformer') body = path;
    else if (type === 'Pooling') pooling = await json(config);
    else if (type === 'Normalize') {
      layers.push((x) => x.map((value) => value / Math.max(Math.sqrt(dot(x, x)), 1e-12)));
      words.push('normed');
    } else if (type === 'Dense') {
      const made = await dense(await json(config), path, tensor);
      layers.push(made.layer);
      width = made.outputs;
    } else if (type !== 'Dropout') throw unknown(`the module ${displayName(type, 40)}`);
  }
  const modes = modesOf(pooling);
  const kinds = modes.map((mode) => POOLINGS[mode] ?? (mode === 'max' ? undefined : unknownPooling(mode)));
  const settings = await json(`${body === '' ? '' : `${body}/`}sentence_bert_config.json`);
  const own = await json('config_sentence_transformers.json');
  const named = own.similarity_fn_name ?? 'cosine';
  const similarity =
    SIMILARITIES[String(named)] ?? unknown(`the similarity ${displayName(String(named), 40)}`);
  const prompts = (own.prompts ?? {}) as Record<string, string | null>;
  const longest = typeof settings.max_seq_length === 'number' ? settings.max_seq_length : most;
  const length = Math.min(longest, most) - tokenizer.prefix.length - tokenizer.suffix.length;
  const size = width || hidden * modes.length;
  const cased = (text: string) => (settings.do_lower_case === true ? text.toLowerCase() : text).trim();
  return {
    words: [
      kinds.map((kind) => kind?.words ?? 'the largest of the tokens').join(' and '),
      `${size} dimensions`,
      ...new Set(words),
    ].join(', '),
    similarity,
    async encode(texts) {
      const promptOf = (role: TextRole): string => {
        const name =
          PROMPTS[role].find((one) => one in prompts) ?? (own.default_prompt_name as string | null);
        return (name != null && prompts[name]) || '';
      };
      const whole = texts.map(({ text, role }) => cased(promptOf(role) + text));
      const roles = [...new Set(texts.map(({ role }) => role))];
      const [encoded, alone] = await Promise.all(
        [whole, roles.map((role) => cased(promptOf(role)))].map((all) => tokenizer.encodeAll(all)),
      );
      const { prefix, suffix } = tokenizer;
      const left = roles.map((role, i) =>
        pooling.include_prompt === false && promptOf(role) !== '' ? prefix.length + alone![i]!.length : 0,
      );
      return texts.map(({ role }, i) => ({
        ids: [...prefix, ...encoded![i]!.slice(0, length), ...suffix],
        left: left[roles.indexOf(role)]!,
      }));
    },
    pooled(count, left) {
      const parts = kinds.map((kind) => ({
        kind,
        sum: new Float64Array(hidden).fill(kind ? 0 : Number.NEGATIVE_INFINITY),
        weights: 0,
      }));
      return {
        add(row, position) {
          if (position < left) return;
          for (const part of parts) {
            const weight = part.kind?.weight(position, count, left) ?? 1;
            part.weights += weight;
            if (!part.kind) for (let c = 0; c < hidden; c++) part.sum[c] = Math.max(part.sum[c]!, row[c]!);
            else if (weight !== 0) for (let c = 0; c < hidden; c++) part.sum[c]! += weight * row[c]!;
          }
        },
        end() {
          const joined = new Float64Array(hidden * parts.length);
          for (const [i, { kind, sum, weights }] of parts.entries()) {
            const divisor = kind ? Math.max(kind.divisor(weights), 1e-9) : 1;
            joined.set(
              sum.map((value) => value / divisor),
              i * hidden,
            );
          }
          return layers.reduce<Vector>((x, layer) => layer(x), joined);
        },
      };
    },
  };
}

function modulesOf(listed: unknown): { type: string; path: string }[] {
  const wrong = () =>
    new AmalgamError('ConfigInvalid', 'modules.json is no list of modules.', 'Get the model again.');
  if (!Array.isArray(listed)) throw wrong();
  return listed.map((module: unknown) => {
    const { type, path = '' } = (module ?? {}) as { type?: unknown; path?: unknown };
    if (typeof type !== 'string' || typeof path !== 'string') throw wrong();
    return { type: type.slice(type.lastIndexOf('.') + 1), path };
  });
}

function modesOf(pooling: Json): string[] {
  const { pooling_mode: mode } = pooling;
  if (typeof mode === 'string') return [mode];
  if (Array.isArray(mode) && mode.length > 0) return mode.map(String);
  const old = OLD_MODES.filter(([key]) => pooling[key] === true).map(([, one]) => one);
  return old.length > 0 ? old : ['mean'];
}

async function dense(
  config: Json,
  path: string,
  tensor: RunningModel['tensor'],
): Promise<{ layer: Layer; outputs: number }> {
  const name = String(config.activation_function ?? 'torch.nn.modules.activation.Tanh');
  const activate =
    ACTIVATIONS[name.slice(name.lastIndexOf('.') + 1).toLowerCase()] ??
    unknown(`the activation ${displayName(name, 60)} of ${path}`);
  if (
    config.use_residual === true ||
    (config.module_input_name ?? 'sentence_embedding') !== 'sentence_embedding'
  )
    throw unknown(`the inputs of ${path}`);
  const weight =
    (await tensor(`${path}/linear.weight`)) ?? unknown(`${path} without its weights as safetensors`);
  const bias = (await tensor(`${path}/linear.bias`))?.values;
  const [outputs, inputs] = weight.shape as [number, number];
  const layer: Layer = (x) =>
    Float64Array.from({ length: outputs }, (_, o) => {
      let sum = bias?.[o] ?? 0;
      for (let i = 0; i < inputs; i++) sum += weight.values[o * inputs + i]! * x[i]!;
      return activate(sum);
    });
  return { layer, outputs };
}

const unknownPooling = (mode: string): never => unknown(`the pooling ${displayName(mode, 40)}`);

function unknown(what: string): never {
  throw new AmalgamError(
    'ArchitectureUnsupported',
    `The model makes embeddings with ${what}, which is not known here.`,
    'It can still be merged. Measure the output with sentence-transformers.',
  );
}
