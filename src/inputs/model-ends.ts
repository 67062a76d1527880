/** The two ends of a model, token embedding and head: how they are called, and whether they are one tensor. */

import { isWeightDtype } from '../formats/dtype';
import { decodeToF32 } from '../formats/half';
import type { ModelConfig } from '../formats/model-config';
import { tensorKey } from '../models/families';
import type { Family } from '../models/family';
import { tensorPlace, tensorRole } from '../models/tensor-role';
import { findFile, type ModelFolder } from '../sources/model-folder';
import type { TensorRef } from './tensor-view';

type Shaped = ReadonlyMap<string, { shape: readonly number[] }>;

/** Embeddings of positions and of segments have no row for a token. */
const NO_TOKENS = /(?:^|\.)(?:wpe|embed_positions|position_embeddings|token_type_embeddings)\.weight$/;

/**
 * Names of embedding and head: the family's, or for an unknown one those with that role, where only one has it.
 * @param tensors by their names without the family's prefix
 */
export function endsOf(family: Family | undefined, tensors: Shaped): { embedding?: string; head?: string } {
  if (family) {
    return { embedding: tensorKey(family.embedding, family), head: tensorKey(family.head, family) };
  }
  const only = (kind: 'embedding' | 'head') => {
    const found = [...tensors].filter(
      ([name, { shape }]) => tensorRole(name, shape).kind === kind && !NO_TOKENS.test(name),
    );
    // encoder–decoders: what both share, beside copies of it
    const shared = found.find(([name]) => name === 'shared.weight');
    return (found.length === 1 ? found[0]! : shared)?.[0];
  };
  const embedding = only('embedding');
  if (embedding === undefined) return {};
  return { embedding, head: only('head') ?? 'lm_head.weight' };
}

/**
 * Whether the config ties the head to the embedding. Absent means the default of the family's configuration class, and
 * for an unknown family that the embedding doubles as head when no head is stored.
 */
export function saysTied(
  config: ModelConfig | undefined,
  family: Family | undefined,
  tensors: Shaped,
): boolean {
  if (!config) return false;
  const text = config.raw.get('text_config');
  const said =
    config.raw.has('tie_word_embeddings') || (text instanceof Map && text.has('tie_word_embeddings'));
  if (said) return config.tieWordEmbeddings;
  const type = config.modelType;
  if (family && type !== undefined) return family.modelTypes[type]?.tiedByDefault ?? false;
  return ![...tensors].some(
    ([name, { shape }]) => tensorPlace(name) === 'after' && tensorRole(name, shape).kind === 'head',
  );
}

/**
 * Whether a checkpoint whose config ties its ends stores two that differ. transformers 5 then loads both (modeling_utils.py,
 * tie_weights); versions before take the embedding for both.
 * @throws AmalgamError of reading
 */
export async function endsDiffer(
  folder: ModelFolder,
  config: ModelConfig | undefined,
  family: Family | undefined,
  tensors: ReadonlyMap<string, TensorRef>,
  signal?: AbortSignal,
): Promise<boolean> {
  if (!saysTied(config, family, tensors)) return false;
  const keyed = new Map([...tensors].map(([name, ref]) => [tensorKey(name, family), ref]));
  const { embedding = '', head = '' } = endsOf(family, keyed);
  const [a, b] = [keyed.get(embedding), keyed.get(head)];
  return a !== undefined && b !== undefined && !(await sameValues(folder, a, b, signal));
}

/** Elements that are compared at once. */
const PIECE = 1 << 20;
/** Of ends on a hub that are larger than this, samples are compared: all of both would be a download ahead of the plan. */
const REMOTE_BYTES = 64 * 2 ** 20;
const SAMPLES = 32;
const SAMPLE = 1 << 14;

async function sameValues(
  folder: ModelFolder,
  a: TensorRef,
  b: TensorRef,
  signal?: AbortSignal,
): Promise<boolean> {
  if (`${a.shape}` !== `${b.shape}`) return false;
  const count = a.shape.reduce((n, extent) => n * extent, 1);
  // stored bytes, or their f32 bits where the dtypes differ
  const valuesOf = (ref: TensorRef) => {
    const source = findFile(folder, ref.file)!.open();
    const width = (ref.end - ref.begin) / count;
    return async (begin: number, end: number): Promise<Uint8Array | Uint32Array> => {
      const stored = await source.read(ref.begin + begin * width, ref.begin + end * width, signal);
      if (a.dtype === b.dtype || !isWeightDtype(ref.dtype)) return stored;
      const decoded = new Float32Array(end - begin);
      decodeToF32(stored, ref.dtype, decoded);
      return new Uint32Array(decoded.buffer);
    };
  };
  const [one, other] = [valuesOf(a), valuesOf(b)];
  const isSampled = folder.origin.kind === 'hub' && a.end - a.begin > REMOTE_BYTES;
  const [size, step] = isSampled ? [SAMPLE, Math.floor((count - SAMPLE) / (SAMPLES - 1))] : [PIECE, PIECE];
  for (let begin = 0; begin < count; begin += step) {
    const end = Math.min(count, begin + size);
    const [x, y] = await Promise.all([one(begin, end), other(begin, end)]);
    if (x.length !== y.length || x.some((value, i) => value !== y[i])) return false;
  }
  return true;
}
