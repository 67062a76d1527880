/** Weights on the device: linear layers in their storage dtype, cut into tiles of whole output rows; vectors in f32. */

import type { BackendBuffer } from '../backend/backend';
import { DTYPE_CODE } from '../backend/kernels/encoding';
import { encodeWeights, PANEL, packPanels } from '../backend/kernels/matmul';
import { type WeightDtype, weightBytes } from '../formats/dtype';
import { decodeToF32 } from '../formats/half';
import type { Linear, Vector } from '../models/architecture';
import { type DeviceLowRank, loadLowRank } from './low-rank';
import type { Queue } from './queue';
import { readOutputs, type TakeRows } from './stored-rows';
import { cutRows, layoutOn, rowBytesOf, type WeightLayout } from './weight-layout';
import {
  joinedUpdate,
  type LowRankUpdate,
  type StoredWeight,
  summandsOf,
  type WeightSource,
  type WeightSummand,
} from './weight-source';

/** A linear layer ready to multiply. */
export interface DeviceLinear {
  /** Name of the stored weight. */
  name: string;
  inputs: number;
  outputs: number;
  dtype: WeightDtype;
  /** Factor of its outputs; the bias has it already. */
  scale: number;
  /** Whole output rows [first, first + outputs). */
  tiles: DeviceTile[];
  /** What is added to these weights, each without bias and summands of its own. */
  summands?: DeviceLinear[];
  /** Rows from a summand to the next where all lie in one buffer. */
  step?: number;
  lowRank?: DeviceLowRank;
}

export interface DeviceTile {
  first: number;
  outputs: number;
  weights: BackendBuffer;
  layout: WeightLayout;
  /** Its first row in the buffer, which several layers may share. */
  row: number;
  /** One number for each row of the buffer; beside rows of further summands their scale, as a factor of the first one's. */
  bias?: BackendBuffer;
  /** The buffers are another layer's to free. */
  borrowed?: true;
}

/** Reads weights of one model onto the device. Names are the architecture's. */
export interface WeightReader {
  readonly source: WeightSource;
  stored(name: string): { name: string; weight: StoredWeight };
  /** A linear layer with its bias and its low-rank update. */
  linear(linear: Linear, signal?: AbortSignal): Promise<DeviceLinear>;
  /** Layers of one input, in one buffer where they fit, with their summands: one dispatch multiplies them all. Not in panels. */
  linears(group: readonly Linear[], signal?: AbortSignal): Promise<DeviceLinear[]>;
  /** Takes the scales of summands, and reads the low-rank updates anew, of layers that were loaded together. */
  renewUpdates(
    devices: readonly DeviceLinear[],
    group: readonly Linear[],
    signal?: AbortSignal,
  ): Promise<void>;
  /** Reads the biases anew of layers that are loaded. */
  renewBiases(
    devices: readonly DeviceLinear[],
    group: readonly Linear[],
    signal?: AbortSignal,
  ): Promise<void>;
  /** Output rows [first, first + outputs) of a summand of a linear layer, without bias and update, as one tile. */
  tile(
    linear: Linear,
    summand: WeightSummand,
    first: number,
    outputs: number,
    signal?: AbortSignal,
  ): Promise<DeviceTile>;
  /** A whole tensor as f32. */
  vector(name: string, signal?: AbortSignal): Promise<BackendBuffer>;
  /** The values of a vector, as they are used. */
  values(vector: Vector, signal?: AbortSignal): Promise<Float32Array<ArrayBuffer>>;
  upload(values: Float32Array<ArrayBuffer>, label: string): BackendBuffer;
  free(linear: DeviceLinear): void;
}

/**
 * @param claimed the architecture's name → the stored name (`claimTensors`)
 * @param tileBytes most bytes of one weight buffer
 * @param encoded weights of eight bits, where the engine has them
 */
export function createWeightReader(
  queue: Queue,
  source: WeightSource,
  claimed: ReadonlyMap<string, string>,
  tileBytes: number,
  encoded = false,
): WeightReader {
  const stored = (name: string) => {
    const found = claimed.get(name)!;
    return { name: found, weight: source.tensors.get(found)! };
  };

  const floats = async (name: string, signal?: AbortSignal): Promise<Float32Array<ArrayBuffer>> => {
    const { name: key, weight } = stored(name);
    const values = new Float32Array(weight.shape.reduce((a, b) => a * b, 1));
    const bytes = await source.read(key, 0, values.length * weightBytes(weight.dtype), signal);
    decodeToF32(bytes, weight.dtype, values);
    return values;
  };
  const upload = (values: ArrayBufferView<ArrayBuffer>, label: string) => {
    const buffer = queue.allocate(values.byteLength, label);
    queue.write(buffer, 0, values);
    return buffer;
  };

  const layoutFor = (inputs: number) => layoutOn(queue.engine, inputs, encoded);
  const room = (
    outputs: number,
    { inputs, dtype, name }: Pick<DeviceLinear, 'inputs' | 'dtype' | 'name'>,
  ) => {
    const layout = layoutFor(inputs);
    const inRows = layout.endsWith('rows');
    const rows = inRows ? outputs : Math.ceil(outputs / PANEL) * PANEL;
    const bytes = rows * rowBytesOf(layout, dtype, inputs);
    return inRows ? queue.allocate(bytes, name) : queue.allocateWeights(bytes, name);
  };
  /** Puts stored rows from row `first` on. */
  const put = (
    weights: BackendBuffer,
    { inputs, dtype, name }: Pick<DeviceLinear, 'inputs' | 'dtype' | 'name'>,
    first: number,
    stored: Uint8Array<ArrayBuffer>,
  ) => {
    const rowBytes = inputs * weightBytes(dtype);
    if (!layoutFor(inputs).startsWith('eight-bit'))
      return queue.write(weights, first * rowBytes, stored, true);
    const raw = upload(stored, name);
    const params = { dtype: DTYPE_CODE[dtype], inputs, outputs: stored.length / rowBytes, first };
    queue.run(encodeWeights, { params, buffers: { raw, weights } });
    queue.free(raw);
  };

  const summands = ({ weight }: Linear) => summandsOf(source, stored(weight).name);

  const tile: WeightReader['tile'] = async (linear, summand, first, outputs, signal) => {
    const device = { ...summand, inputs: linear.inputs };
    const layout = layoutFor(linear.inputs);
    const weights = room(outputs, device);
    try {
      const take: TakeRows = (row, rows) => put(weights, device, row, rows);
      await readOutputs(source, { linear, summand, first, outputs, take }, signal);
      if (layout === 'panels') layOut(weights, device.dtype, linear.inputs, outputs);
      return { first, outputs, weights, row: 0, layout };
    } catch (error) {
      queue.free(weights);
      throw error;
    }
  };

  /** Puts a tile's weights into panels. */
  const layOut = (weights: BackendBuffer, dtype: WeightDtype, inputs: number, outputs: number) => {
    const room = queue.allocate(PANEL * inputs * weightBytes(dtype), 'rows of a panel');
    try {
      const params = { dtype: DTYPE_CODE[dtype], inputs, outputs };
      queue.run(packPanels, { params, buffers: { weights, room } }, inputs * outputs);
    } finally {
      queue.free(room);
    }
  };

  const freeLowRank = ({ lowRank }: DeviceLinear) => {
    if (!lowRank || lowRank.borrowed) return;
    queue.free(lowRank.into);
    queue.free(lowRank.outOf);
  };
  const free = (device: DeviceLinear) => {
    for (const summand of device.summands ?? []) free(summand);
    for (const { weights, bias, borrowed } of device.tiles) {
      if (borrowed) continue;
      queue.free(weights);
      queue.free(bias);
    }
    freeLowRank(device);
  };

  /** The update that belongs to the model. */
  const ownUpdate = ({ update }: Linear): LowRankUpdate | undefined =>
    update && {
      rank: update.down.outputs,
      scale: 1,
      load: async (signal) => ({
        left: await floats(update.up.weight, signal),
        right: await floats(update.down.weight, signal),
      }),
    };

  const renewUpdates = async (
    devices: readonly DeviceLinear[],
    group: readonly Linear[],
    signal?: AbortSignal,
  ) => {
    const updates = group.map((linear, i) =>
      joinedUpdate(
        [ownUpdate(linear), source.updates?.get(devices[i]!.name)].filter((each) => each !== undefined),
      ),
    );
    const fresh = await loadLowRank(updates, group, devices, upload, signal);
    for (const [i, device] of devices.entries()) {
      scaleSummands(device, group[i]!);
      freeLowRank(device);
      const own = fresh[i];
      if (own) device.lowRank = own;
      else delete device.lowRank;
    }
  };

  /** Takes the scales of a layer's summands. */
  const scaleSummands = ({ summands: own = [], tiles, scale, step }: DeviceLinear, of: Linear) => {
    const [, ...scales] = summands(of);
    for (const [k, summand] of own.entries()) {
      const ratio = scales[k]!.scale;
      summand.scale = ratio * scale;
      if (!step) continue;
      const { row, outputs } = summand.tiles[0]!;
      queue.write(tiles[0]!.bias!, 4 * row, new Float32Array(outputs).fill(ratio));
    }
  };

  /** The bias of a linear layer, times its factor. */
  const biasOf = async ({ bias, outputs, stack, scale = 1 }: Linear, signal?: AbortSignal) => {
    if (bias === undefined) return undefined;
    const begin = (stack?.index ?? 0) * outputs;
    return (await floats(bias, signal)).slice(begin, begin + outputs).map((v) => v * scale);
  };

  const renewBiases: WeightReader['renewBiases'] = async (devices, group, signal) => {
    for (const [i, { tiles }] of devices.entries()) {
      const values = await biasOf(group[i]!, signal);
      for (const { bias, row, first, outputs } of tiles)
        if (values && bias) queue.write(bias, 4 * row, values.slice(first, first + outputs));
    }
  };

  /** A layer and its summands, of which nothing is loaded. */
  const withoutWeights = (of: Linear): DeviceLinear => {
    const { weight, inputs, outputs, scale = 1 } = of;
    const [{ dtype }, ...more] = summands(of) as [WeightSummand, ...WeightSummand[]];
    const device = { name: stored(weight).name, inputs, outputs, dtype, scale, tiles: [] };
    if (more.length === 0) return device;
    return { ...device, summands: more.map((summand) => ({ ...device, ...summand, tiles: [] })) };
  };

  /** A summand that is to be loaded. */
  interface Member {
    of: Linear;
    device: DeviceLinear;
    summand: WeightSummand;
  }

  const rowsOf = (members: readonly Member[]) => members.reduce((sum, { of }) => sum + of.outputs, 0);
  const canJoin = (members: readonly Member[]) => {
    const [{ device }] = members as [Member];
    const { inputs, dtype } = device;
    const layout = layoutFor(inputs);
    return (
      members.length > 1 &&
      layout.endsWith('rows') &&
      members.every(({ of, summand }) => of.inputs === inputs && summand.dtype === dtype) &&
      rowsOf(members) * rowBytesOf(layout, dtype, inputs) <= tileBytes
    );
  };

  /** Loads summands one behind the other into one buffer. */
  const loadTogether = async (members: readonly Member[], signal?: AbortSignal) => {
    const [{ device: first }] = members as [Member];
    const weights = room(rowsOf(members), first);
    let row = 0;
    for (const [i, { device, of }] of members.entries()) {
      const own = { first: 0, outputs: of.outputs, row, layout: layoutFor(of.inputs), weights };
      device.tiles.push(i > 0 ? { ...own, borrowed: true } : own);
      row += of.outputs;
    }
    for (const { of, device, summand } of members) {
      const { row: from } = device.tiles[0]!;
      const take: TakeRows = (at, bytes) => put(weights, device, from + at, bytes);
      await readOutputs(source, { linear: of, summand, first: 0, outputs: of.outputs, take }, signal);
    }
  };

  const loadApart = async ({ of, device, summand }: Member, signal?: AbortSignal) => {
    for (const [first, outputs] of cutRows(of, summand.dtype, tileBytes))
      device.tiles.push(await tile(of, summand, first, outputs, signal));
  };

  /** The biases of layers that are loaded, and room for the scales of what is stacked behind them. */
  const addBiases = async (
    devices: readonly DeviceLinear[],
    group: readonly Linear[],
    isJoined: boolean,
    signal?: AbortSignal,
  ) => {
    const biases = await Promise.all(group.map((one) => biasOf(one, signal)));
    const isStacked = devices[0]!.step !== undefined;
    if (!isStacked && biases.every((bias) => !bias)) return;
    if (isJoined) {
      const last = devices.at(-1)!;
      const end = (isStacked ? last.summands!.at(-1)! : last).tiles[0]!;
      const values = new Float32Array(end.row + end.outputs);
      for (const [i, { tiles }] of devices.entries()) values.set(biases[i] ?? [], tiles[0]!.row);
      const bias = upload(values, `${devices[0]!.name}, bias`);
      for (const { tiles } of devices) tiles[0]!.bias = bias;
      return;
    }
    for (const [i, { tiles, name }] of devices.entries())
      for (const t of biases[i] ? tiles : [])
        t.bias = upload(biases[i]!.slice(t.first, t.first + t.outputs), `${name}, bias`);
  };

  const linears: WeightReader['linears'] = async (group, signal) => {
    const devices = group.map(withoutWeights);
    try {
      const count = 1 + (devices[0]!.summands?.length ?? 0);
      const isEven = devices.every(({ summands: own = [] }) => 1 + own.length === count);
      const membersAt = (k: number): Member[] =>
        devices.flatMap((device, i) => {
          const [of, own] = [group[i]!, k === 0 ? device : device.summands?.[k - 1]];
          return own ? [{ of, device: own, summand: summands(of)[k]! }] : [];
        });
      const most = 1 + Math.max(...devices.map(({ summands: own = [] }) => own.length));
      const levels = Array.from({ length: most }, (_, k) => membersAt(k));
      const isSame = devices.every(({ scale }) => scale === devices[0]!.scale);
      const isStacked = isSame && isEven && count > 1 && canJoin(levels.flat());
      const isJoined = isStacked || (isSame && canJoin(levels[0]!));
      if (isStacked) {
        await loadTogether(levels.flat(), signal);
        for (const device of devices) device.step = rowsOf(levels[0]!);
      } else
        for (const level of levels) {
          if (isSame && canJoin(level)) await loadTogether(level, signal);
          else for (const member of level) await loadApart(member, signal);
        }
      await addBiases(devices, group, isJoined, signal);
      await renewUpdates(devices, group, signal);
      return devices;
    } catch (error) {
      for (const device of devices) free(device);
      throw error;
    }
  };

  return {
    source,
    stored,
    tile,
    free,
    renewUpdates,
    renewBiases,
    linears,
    linear: async (of, signal) => (await linears([of], signal))[0]!,
    async vector(name, signal) {
      return upload(await floats(name, signal), name);
    },
    upload,
    async values({ tensors }, signal) {
      const parts: Float32Array[] = [];
      for (const part of tensors) {
        if ('fill' in part) parts.push(new Float32Array(part.count).fill(part.fill));
        else {
          const read = await floats(part.name, signal);
          parts.push(part.as === 'decay' ? read.map((v) => -Math.exp(v)) : read);
        }
      }
      return Float32Array.from(parts.flatMap((part) => [...part]));
    },
  };
}
