/** Low-rank updates of linear layers on the device, as factors: those of layers that are loaded together in one pair of buffers. */
import type { BackendBuffer } from '../backend/backend';
import { AmalgamError } from '../errors';
import { counted } from '../formats/quantity';
import type { Linear } from '../models/architecture';
import type { LowRankUpdate } from './weight-source';

/**
 * y += scale · (x·inᵀ)·outᵀ, f32: `rank` rows of `into` [·, inputs] and the rows of the layer's outputs in `outOf` [·, rank]; rank
 * filled up to a multiple of 4.
 */
export interface DeviceLowRank {
  into: BackendBuffer;
  outOf: BackendBuffer;
  /** First rows in the buffers, which the layers of a group share. */
  intoRow: number;
  outRow: number;
  rank: number;
  scale: number;
  /** The buffers are another layer's to free. */
  borrowed?: true;
}

/**
 * The updates of the layers of a group, in their order. All of several have the largest rank, filled up with zeros, and their
 * scales in their factors.
 * @param named with the stored names
 */
export async function loadLowRank(
  updates: readonly (LowRankUpdate | undefined)[],
  group: readonly Linear[],
  named: readonly { name: string }[],
  upload: (values: ArrayBufferView<ArrayBuffer>, label: string) => BackendBuffer,
  signal?: AbortSignal,
): Promise<(DeviceLowRank | undefined)[]> {
  const most = Math.max(0, ...updates.map((update) => update?.rank ?? 0));
  if (most === 0) return group.map(() => undefined);
  const isAlone = group.length === 1;
  const rank = Math.ceil(most / 4) * 4;
  const { inputs } = group[0]!;
  const into = new Float32Array(group.length * rank * inputs);
  const outOf = new Float32Array(group.reduce((sum, { outputs }) => sum + outputs, 0) * rank);
  const made: (Pick<DeviceLowRank, 'intoRow' | 'outRow' | 'scale'> | undefined)[] = [];
  let outRow = 0;
  for (const [i, linear] of group.entries()) {
    const update = updates[i];
    if (update) {
      const at = { into: into.subarray(i * rank * inputs), outOf: outOf.subarray(outRow * rank), rank };
      await put(update, linear, named[i]!.name, { ...at, scale: isAlone ? 1 : update.scale }, signal);
    }
    made.push(update && { intoRow: i * rank, outRow, scale: isAlone ? update.scale : 1 });
    outRow += linear.outputs;
  }
  const { name } = named[0]!;
  const shared = { into: upload(into, `${name}, into`), outOf: upload(outOf, `${name}, out of`), rank };
  const owner = made.findIndex((one) => one !== undefined);
  return made.map((one, i) => one && { ...shared, ...one, ...(i > owner && { borrowed: true as const }) });
}

/** Puts the factors of an update where they belong: `into` by rows, `outOf` by columns. */
async function put(
  { rank, load }: LowRankUpdate,
  { inputs, outputs, storage }: Linear,
  name: string,
  to: { into: Float32Array; outOf: Float32Array; rank: number; scale: number },
  signal?: AbortSignal,
): Promise<void> {
  const { left, right } = await load(signal);
  const [rows, cols] = storage === 'out_in' ? [outputs, inputs] : [inputs, outputs];
  if (left.length !== rows * rank || right.length !== rank * cols) {
    throw new AmalgamError(
      'ShapeMismatch',
      `The adapter's factors for ${name} hold ${left.length} and ${counted(right.length, 'value')}, not [${rows}, ${rank}] and [${rank}, ${cols}].`,
      'The adapter was made for another model. Choose its own base.',
    );
  }
  const at = storage === 'out_in' ? { in: right, out: left } : { in: left, out: right };
  for (let k = 0; k < rank; k++) {
    for (let i = 0; i < inputs; i++) {
      to.into[k * inputs + i] = storage === 'out_in' ? at.in[k * inputs + i]! : at.in[i * rank + k]!;
    }
    for (let o = 0; o < outputs; o++) {
      const value = storage === 'out_in' ? at.out[o * rank + k]! : at.out[k * outputs + o]!;
      to.outOf[o * to.rank + k] = to.scale * value;
    }
  }
}
