/** Weights on the device: linear layers in their storage dtype, cut into tiles of whole output rows; vectors in f32. */

import type { BackendBuffer } from '../backend/backend';
import { DTYPE_CODE } from '../backend/kernels/encoding';
import { encodeWeights, PANEL, packPanels } from '../backend/kernels/matmul';
import { type WeightDtype, weightBytes } from '../formats/dtype';
import { decodeToF32 } from '../formats/half';
import type { Linear, Vector } from '../models/architecture';
import { type DeviceLowRank, loadLowRank } from './low-rank';
import type { Queue } from './queue';
import { cutRows, layoutOn, rowBytesOf, type WeightLayout } from './weight-layout';
import {
  joinedUpdate,
  type LowRankUpdate,
  type StoredWeight,
  summandsOf,
  type WeightSource,
  type WeightSummand,
} from './weight-source';

/** Bytes asked for at once. */
const READ_BYTES = 8 << 20;

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
  lowRank?: DeviceLowRank;
}

export interface DeviceTile {
  first: number;
  outputs: number;
  weights: BackendBuffer;
  layout: WeightLayout;
  /** Its first row in the buffer, which several layers may share. */
  row: number;
  /** One number for each row of the buffer. */
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
  /** Layers of one input, in one buffer where they fit: one dispatch multiplies them all. Not in panels. */
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
      await fill((row, rows) => put(weights, device, row, rows), linear, summand, first, outputs, signal);
      if (layout === 'panels') layOut(weights, device.dtype, linear.inputs, outputs);
      return { first, outputs, weights, row: 0, layout };
    } catch (error) {
      queue.free(weights);
      throw error;
    }
  };

  /** Reads output rows [first, first + outputs) of a linear layer. @param take takes some of them, from row `row` of these on */
  const fill = async (
    take: (row: number, stored: Uint8Array<ArrayBuffer>) => void,
    linear: Linear,
    { name, dtype }: WeightSummand,
    first: number,
    outputs: number,
    signal?: AbortSignal,
  ) => {
    const width = weightBytes(dtype);
    const rowBytes = linear.inputs * width;
    if (linear.storage === 'in_out') {
      take(0, new Uint8Array((await transposed(linear, name, width, first, outputs, signal)).buffer));
      return;
    }
    const begin = first + (linear.stack?.index ?? 0) * linear.outputs;
    const step = Math.max(1, Math.floor(READ_BYTES / rowBytes / PANEL)) * PANEL;
    for (let row = 0; row < outputs; row += step) {
      const end = begin + Math.min(row + step, outputs);
      take(row, await source.read(name, (begin + row) * rowBytes, end * rowBytes, signal));
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

  /** Rows of outputs out of a weight stored [inputs, outputs]. */
  const transposed = async (
    { inputs, outputs: stride, stack }: Linear,
    name: string,
    width: 2 | 4,
    first: number,
    outputs: number,
    signal?: AbortSignal,
  ) => {
    const out = width === 4 ? new Uint32Array(inputs * outputs) : new Uint16Array(inputs * outputs);
    const rows = Math.max(1, Math.floor(READ_BYTES / (stride * width)));
    for (let row = 0; row < inputs; row += rows) {
      const end = Math.min(row + rows, inputs);
      const skipped = (stack?.index ?? 0) * inputs;
      const bytes = await source.read(
        name,
        (skipped + row) * stride * width,
        (skipped + end) * stride * width,
        signal,
      );
      const values = width === 4 ? new Uint32Array(bytes.buffer) : new Uint16Array(bytes.buffer);
      for (let r = row; r < end; r++) {
        const from = (r - row) * stride + first;
        for (let o = 0; o < outputs; o++) out[o * inputs + r] = values[from + o]!;
      }
    }
    return out;
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
      const [, ...scales] = summands(group[i]!);
      for (const [k, summand] of (device.summands ?? []).entries())
        summand.scale = scales[k]!.scale * device.scale;
      freeLowRank(device);
      const own = fresh[i];
      if (own) device.lowRank = own;
      else delete device.lowRank;
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

  const withoutWeights = (of: Linear): DeviceLinear => {
    const { weight, inputs, outputs, scale = 1 } = of;
    return { name: stored(weight).name, inputs, outputs, dtype: summands(of)[0]!.dtype, scale, tiles: [] };
  };

  const loadTiles = async (to: DeviceLinear, of: Linear, summand: WeightSummand, signal?: AbortSignal) => {
    for (const [first, outputs] of cutRows(of, summand.dtype, tileBytes))
      to.tiles.push(await tile(of, summand, first, outputs, signal));
  };

  const linear = async (of: Linear, signal?: AbortSignal) => {
    const device = withoutWeights(of);
    try {
      await loadTiles(device, of, summands(of)[0]!, signal);
      const bias = await biasOf(of, signal);
      for (const t of bias ? device.tiles : [])
        t.bias = upload(bias!.slice(t.first, t.first + t.outputs), of.bias!);
      await addSummands(device, of, signal);
      await renewUpdates([device], [of], signal);
      return device;
    } catch (error) {
      free(device);
      throw error;
    }
  };

  /** Loads what is added to a layer's weights. */
  const addSummands = async (device: DeviceLinear, of: Linear, signal?: AbortSignal) => {
    for (const summand of summands(of).slice(1)) {
      const { name, dtype } = summand;
      const own: DeviceLinear = { ...device, name, dtype, scale: summand.scale * device.scale, tiles: [] };
      delete own.summands;
      device.summands = [...(device.summands ?? []), own];
      await loadTiles(own, of, summand, signal);
    }
  };

  const canJoin = (group: readonly DeviceLinear[]) => {
    const [{ inputs, dtype, scale }] = group as [DeviceLinear];
    const rows = group.reduce((sum, { outputs }) => sum + outputs, 0);
    return (
      group.every((one) => one.inputs === inputs && one.dtype === dtype && one.scale === scale) &&
      rows * rowBytesOf(layoutFor(inputs), dtype, inputs) <= tileBytes
    );
  };

  return {
    source,
    stored,
    tile,
    free,
    renewUpdates,
    renewBiases,
    linear,
    async linears(group, signal) {
      const devices = group.map(withoutWeights);
      const [{ name, inputs }] = devices as [DeviceLinear];
      const rows = group.reduce((sum, { outputs }) => sum + outputs, 0);
      let weights: BackendBuffer | undefined;
      try {
        if (group.length === 1 || !canJoin(devices)) {
          for (const [i, one] of group.entries()) devices[i] = await linear(one, signal);
          return devices;
        }
        weights = room(rows, devices[0]!);
        const biases = new Float32Array(rows);
        let row = 0;
        for (const [i, one] of group.entries()) {
          const from = row;
          await fill(
            (at, bytes) => put(weights!, devices[i]!, from + at, bytes),
            one,
            summands(one)[0]!,
            0,
            one.outputs,
            signal,
          );
          biases.set((await biasOf(one, signal)) ?? [], row);
          const own = { first: 0, outputs: one.outputs, row, layout: layoutFor(inputs) };
          devices[i]!.tiles.push({ ...own, weights, ...(i > 0 && { borrowed: true }) });
          row += one.outputs;
        }
        if (group.some(({ bias }) => bias !== undefined)) {
          const bias = upload(biases, `${name}, bias`);
          for (const { tiles } of devices) tiles[0]!.bias = bias;
        }
        for (const [i, one] of group.entries()) await addSummands(devices[i]!, one, signal);
        await renewUpdates(devices, group, signal);
        return devices;
      } catch (error) {
        if (devices[0]!.tiles.length === 0) queue.free(weights);
        for (const device of devices) free(device);
        throw error;
      }
    },
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
