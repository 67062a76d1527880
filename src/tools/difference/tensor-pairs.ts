/** The tensors of two models side by side: which can be compared, and what stands alone or has another shape. */
import { type Dtype, isWeightDtype } from '../../formats/dtype';
import type { Model, ModelTensor } from '../../inputs/model';
import { elementCount } from '../../inputs/opened-model';
import { inTensorOrder } from '../../models/tensor-role';

export interface TensorPair {
  /** Name in the base. */
  name: string;
  /** Name in both models' tables: without the family's prefix. */
  key: string;
  base: ModelTensor;
  tuned: ModelTensor;
}

export interface TensorPairs {
  /** Same shape, both F32, F16 or BF16; in natural order. */
  shared: TensorPair[];
  /** Same shape, but of a dtype that is not computed with: compared byte by byte. */
  raw: TensorPair[];
  onlyInBase: string[];
  onlyInFinetuned: string[];
  shapeMismatches: { name: string; base: number[]; finetuned: number[] }[];
}

/** Pairs the tensors of two models by their names without the family's prefix. Nothing is read. */
export function pairTensors(base: Model, tuned: Model): TensorPairs {
  const pairs: TensorPair[] = [];
  const alone: { name: string }[] = [];
  for (const [key, tensor] of base.tensors) {
    const other = tuned.tensors.get(key);
    if (other) pairs.push({ name: tensor.name, key, base: tensor, tuned: other });
    else alone.push({ name: tensor.name });
  }
  const added = [...tuned.tensors]
    .filter(([key]) => !base.tensors.has(key))
    .map(([, { name }]) => ({ name }));
  const ordered = inTensorOrder(pairs);
  const fits = ({ base: a, tuned: b }: TensorPair) => sameShape(a.shape, b.shape);
  const weights = ({ base: a, tuned: b }: TensorPair) =>
    isWeightDtype(valueDtype(a)) && isWeightDtype(valueDtype(b));
  return {
    shared: ordered.filter((pair) => fits(pair) && weights(pair)),
    raw: ordered.filter((pair) => fits(pair) && !weights(pair)),
    onlyInBase: inTensorOrder(alone).map(({ name }) => name),
    onlyInFinetuned: inTensorOrder(added).map(({ name }) => name),
    shapeMismatches: ordered
      .filter((pair) => !fits(pair))
      .map(({ name, base: a, tuned: b }) => ({ name, base: [...a.shape], finetuned: [...b.shape] })),
  };
}

/** Dtype of the stored values a version starts from: an adapter may bring another than the checkpoint has. */
export function valueDtype(tensor: ModelTensor): Dtype {
  return tensor.view.origin.dtype;
}

/** Stored bytes of both versions; one is counted when they are the same. */
export function pairBytes({ base, tuned }: TensorPair): number {
  const a = base.view.origin;
  const b = tuned.view.origin;
  return a === b ? a.end - a.begin : a.end - a.begin + b.end - b.begin;
}

export function pairElements({ base }: TensorPair): number {
  return elementCount(base.shape);
}

function sameShape(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((extent, i) => extent === b[i]);
}
