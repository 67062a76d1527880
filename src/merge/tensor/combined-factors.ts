/** Factors that several LoRAs of a module make as one, described by plain data: a thread computes them as their owner does. */
import {
  type Combined,
  type CombineSettings,
  combine,
  type LoraFactors,
  stackedDown,
  stackedUp,
} from '../../adapters/combine';
import { dataTensor } from '../../inputs/row-map';
import { readF32 } from '../../inputs/stored-tensor';
import type { MakeValues, ReadTensor, TensorRef } from '../../inputs/tensor-view';

interface CombinedSide {
  side: 'a' | 'b';
  settings: CombineSettings;
  /** Without their values, which are those of the tensors: A and B of each, or where they are only stacked this side of each. */
  loras: Omit<LoraFactors, 'a' | 'b'>[];
}

/** Combined modules of which the second factor has not been read yet; those of a unit's neighbors among them. */
const MOST_OPEN = 4;
const opened = new Map<readonly TensorRef[], Promise<Combined>>();

function combined(
  from: readonly TensorRef[],
  { settings, loras }: CombinedSide,
  read: ReadTensor,
): Promise<Combined> {
  const known = opened.get(from);
  if (known) return known;
  const made = Promise.all(
    loras.map(async (lora, i) => ({
      ...lora,
      a: await readF32(from[2 * i]!, read),
      b: await readF32(from[2 * i + 1]!, read),
    })),
  ).then((all) => combine(all, settings));
  opened.set(from, made);
  made.catch(() => opened.delete(from));
  if (opened.size > MOST_OPEN) opened.delete(opened.keys().next().value!);
  return made;
}

export const combinedValues: MakeValues<CombinedSide> = async (from, given, read) => {
  const { side, settings, loras } = given;
  if (settings.combination === 'cat') {
    const parts = await Promise.all(from.map((ref) => readF32(ref, read)));
    const own = loras.map((lora, i) => ({ ...lora, values: parts[i]! }));
    return side === 'a' ? stackedDown(own) : stackedUp(own);
  }
  const made = (await combined(from, given, read))[side];
  // the other side has been read, or is read from what it finds then
  if (side === 'a') return made.slice();
  opened.delete(from);
  return made;
};

/** A and B of the result, at the place of one of the factors. */
export function combinedTensors(
  place: Readonly<Record<'a' | 'b', Pick<TensorRef, 'folder' | 'file' | 'key' | 'shape'>>>,
  factors: readonly Readonly<Record<'a' | 'b', TensorRef>>[],
  settings: CombineSettings,
  loras: CombinedSide['loras'],
): Record<'a' | 'b', TensorRef> {
  const isApart = settings.combination === 'cat';
  const all = factors.flatMap(({ a, b }) => [a, b]);
  const tensor = (side: 'a' | 'b') => {
    const from = isApart ? factors.map((pair) => pair[side]) : all;
    const params = { side, settings, loras };
    return dataTensor(place[side], place[side].shape, from, { id: 'combined', params }, combinedValues);
  };
  return { a: tensor('a'), b: tensor('b') };
}
