/** A model as a recipe names it: a checkpoint, with its adapter where it has one, tensor by tensor. */

import { tensorKey } from '../models/families';
import { tensorPlace, tensorRole } from '../models/tensor-role';
import type { Adapter } from './adapter';
import { applyAdapter } from './adapter-views';
import type { Checkpoint } from './checkpoint';
import { dequantized } from './dequantization';
import type { Model, ModelTensor } from './model';
import type { Problems } from './problems';

/**
 * The tensors of a checkpoint with an adapter applied to them. Nothing is read: the views say how the values come
 * about. What does not fit goes to `problems`.
 */
export function modelTensors(
  ref: string,
  checkpoint: Checkpoint,
  adapter: Adapter | undefined,
  problems: Problems,
): Model {
  const tensors = new Map<string, ModelTensor>();
  const { tensors: stored, formats } = dequantized(checkpoint.tensors, checkpoint.config);
  for (const [name, origin] of stored) {
    const short = tensorKey(name, checkpoint.family);
    // Both spellings in one file would be two tensors; then each keeps its own name.
    const key = tensors.has(short) ? name : short;
    const dtype = origin.derived ? 'BF16' : origin.dtype;
    tensors.set(key, { name, view: { origin }, shape: origin.shape, dtype });
  }
  const model: Model = {
    ref,
    checkpoint,
    ...(adapter ? { adapter } : {}),
    tensors,
    ...(formats.size > 0 && { dequantized: [...formats] }),
    ...endsOf(checkpoint, tensors),
    tied: isTied(checkpoint),
  };
  if (adapter) applyAdapter(model, adapter, problems);
  return model;
}

/** Embeddings of positions and of segments have no row for a token. */
const NO_TOKENS = /(?:^|\.)(?:wpe|embed_positions|position_embeddings|token_type_embeddings)\.weight$/;

/** Names of embedding and head: the family's, or for an unknown one those whose role says so, where only one does. */
function endsOf(
  checkpoint: Checkpoint,
  tensors: ReadonlyMap<string, ModelTensor>,
): Pick<Model, 'embedding' | 'head'> {
  const { family } = checkpoint;
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
 * Whether the config ties the head to the embedding. Absent means what the family's configuration class says, and
 * for an unknown family that the embedding doubles as head when no head is stored.
 */
export function isTied(checkpoint: Checkpoint): boolean {
  const { config, family, tensors } = checkpoint;
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

/** Rows of a model's embedding, one per token; undefined where it is not known which tensor that is. */
export function embeddingRows({ embedding, tensors }: Model): number | undefined {
  return embedding === undefined ? undefined : tensors.get(embedding)?.shape[0];
}

/** The same of the checkpoint alone, before an adapter or another vocabulary: what its config is written for. */
export function storedEmbeddingRows({ embedding, tensors, checkpoint }: Model): number | undefined {
  const name = embedding === undefined ? undefined : tensors.get(embedding)?.name;
  return name === undefined ? undefined : checkpoint.tensors.get(name)?.shape[0];
}
