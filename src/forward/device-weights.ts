/** Weights on the device: linear layers in their storage dtype, cut into tiles of whole output rows; vectors in f32. */

import type { Backend, BackendBuffer } from '../backend/backend';
import { DTYPE_CODE } from '../backend/kernels/encoding';
import {
  ENCODED_BLOCK,
  ENCODED_CODE,
  encodePanels,
  PANEL,
  packPanels,
  panelRowBytes,
} from '../backend/kernels/matmul';
import { AmalgamError } from '../errors';
import { type WeightDtype, weightBytes } from '../formats/dtype';
import { decodeToF32 } from '../formats/half';
import { counted } from '../formats/quantity';
import type { Linear, Vector } from '../models/architecture';
import type { Queue } from './queue';
import { joinedUpdate, type LowRankUpdate, type StoredWeight, type WeightSource } from './weight-source';

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
  lowRank?: DeviceLowRank;
}

/** Stored rows one after the other; in panels, as the processor multiplies fastest; in panels of eight bits. */
export type WeightLayout = 'rows' | 'panels' | 'encoded';

export interface DeviceTile {
  first: number;
  outputs: number;
  weights: BackendBuffer;
  layout: WeightLayout;
  bias?: BackendBuffer;
}

/** y += scale · (x·inᵀ)·outᵀ: `into` [rank, inputs], `outOf` [outputs, rank], f32; rank filled up to a multiple of 4. */
interface DeviceLowRank {
  into: BackendBuffer;
  outOf: BackendBuffer;
  rank: number;
  scale: number;
}

/** Reads weights of one model onto the device. Names are the architecture's. */
export interface WeightReader {
  readonly source: WeightSource;
  stored(name: string): { name: string; weight: StoredWeight };
  /** A linear layer with its bias and its low-rank update. */
  linear(linear: Linear, signal?: AbortSignal): Promise<DeviceLinear>;
  /** Reads the low-rank update of a linear layer anew. */
  renewUpdate(device: DeviceLinear, linear: Linear, signal?: AbortSignal): Promise<void>;
  /** Output rows [first, first + outputs) of a linear layer without bias and update, as one tile. */
  tile(linear: Linear, first: number, outputs: number, signal?: AbortSignal): Promise<DeviceTile>;
  /** A whole tensor as f32. */
  vector(name: string, signal?: AbortSignal): Promise<BackendBuffer>;
  /** The values of a vector, as they are used. */
  values(vector: Vector, signal?: AbortSignal): Promise<Float32Array<ArrayBuffer>>;
  upload(values: Float32Array<ArrayBuffer>, label: string): BackendBuffer;
  free(linear: DeviceLinear): void;
}

/** How an engine has a matrix. @param encoded at eight bits where that can be: there are blocks of 32 inputs */
export function layoutOn(
  { kind, allocateWeights }: Pick<Backend, 'kind' | 'allocateWeights'>,
  inputs: number,
  encoded: boolean,
): WeightLayout {
  if (encoded && allocateWeights && inputs % ENCODED_BLOCK.inputs === 0) return 'encoded';
  return kind === 'cpu' ? 'panels' : 'rows';
}

/** Bytes of a row of weights. */
export function rowBytesOf(layout: WeightLayout, dtype: WeightDtype, inputs: number): number {
  return panelRowBytes(layout === 'encoded' ? ENCODED_CODE : DTYPE_CODE[dtype], inputs);
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

  const tile = async (linear: Linear, first: number, outputs: number, signal?: AbortSignal) => {
    const { name, weight } = stored(linear.weight);
    const width = weightBytes(weight.dtype);
    const rowBytes = linear.inputs * width;
    const layout = layoutOn(queue.engine, linear.inputs, encoded);
    const rows = layout === 'rows' ? outputs : Math.ceil(outputs / PANEL) * PANEL;
    const bytes = rows * rowBytesOf(layout, weight.dtype, linear.inputs);
    const weights = layout === 'rows' ? queue.allocate(bytes, name) : queue.allocateWeights(bytes, name);
    /** Takes stored rows from `row` on. */
    const put = (row: number, stored: Uint8Array<ArrayBuffer>) => {
      if (layout !== 'encoded') return queue.write(weights, row * rowBytes, stored, true);
      const buffer = upload(stored, name);
      const params = {
        ...{ dtype: DTYPE_CODE[weight.dtype], inputs: linear.inputs },
        ...{ outputs: stored.length / rowBytes, first: row },
      };
      queue.run(encodePanels, { params, buffers: { rows: buffer, weights } });
      queue.free(buffer);
    };
    try {
      if (linear.storage === 'out_in') {
        const begin = first + (linear.stack?.index ?? 0) * linear.outputs;
        const step = Math.max(1, Math.floor(READ_BYTES / rowBytes / PANEL)) * PANEL;
        for (let row = 0; row < outputs; row += step) {
          const end = begin + Math.min(row + step, outputs);
          put(row, await source.read(name, (begin + row) * rowBytes, end * rowBytes, signal));
        }
      } else {
        const turned = await transposed(linear, width, first, outputs, signal);
        put(0, new Uint8Array(turned.buffer));
      }
      if (layout === 'panels') layOut(weights, weight.dtype, linear.inputs, outputs);
      return { first, outputs, weights, layout };
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

  /** Rows of outputs out of a weight stored [inputs, outputs]. */
  const transposed = async (
    { weight, inputs, outputs: stride, stack }: Linear,
    width: 2 | 4,
    first: number,
    outputs: number,
    signal?: AbortSignal,
  ) => {
    const { name } = stored(weight);
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

  const free = ({ tiles, lowRank }: Pick<DeviceLinear, 'tiles' | 'lowRank'>) => {
    for (const { weights, bias } of tiles) {
      queue.free(weights);
      queue.free(bias);
    }
    queue.free(lowRank?.into);
    queue.free(lowRank?.outOf);
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

  const renewUpdate = async (device: DeviceLinear, linear: Linear, signal?: AbortSignal) => {
    const { name } = device;
    const update = joinedUpdate(
      [ownUpdate(linear), source.updates?.get(name)].filter((each) => each !== undefined),
    );
    const fresh = update && (await loadLowRank(update, linear, name, upload, signal));
    free({ tiles: [], ...(device.lowRank && { lowRank: device.lowRank }) });
    if (fresh) device.lowRank = fresh;
    else delete device.lowRank;
  };

  return {
    source,
    stored,
    tile,
    free,
    renewUpdate,
    async linear(linear, signal) {
      const { name, weight } = stored(linear.weight);
      const device: DeviceLinear = {
        name,
        inputs: linear.inputs,
        outputs: linear.outputs,
        dtype: weight.dtype,
        scale: linear.scale ?? 1,
        tiles: [],
      };
      try {
        for (const [first, outputs] of cutRows(linear, weight.dtype, tileBytes)) {
          device.tiles.push(await tile(linear, first, outputs, signal));
        }
        if (linear.bias !== undefined) {
          const all = await floats(linear.bias, signal);
          const begin = (linear.stack?.index ?? 0) * linear.outputs;
          const bias = all.slice(begin, begin + linear.outputs).map((v) => v * device.scale);
          for (const t of device.tiles)
            t.bias = upload(bias.slice(t.first, t.first + t.outputs), linear.bias);
        }
        await renewUpdate(device, linear, signal);
        return device;
      } catch (error) {
        free(device);
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
      const whole = new Float32Array(parts.reduce((sum, part) => sum + part.length, 0));
      let at = 0;
      for (const part of parts) {
        whole.set(part, at);
        at += part.length;
      }
      return whole;
    },
  };
}

/** The row ranges of a weight's tiles, whole panels where they fit: [first, count]. */
export function cutRows(linear: Linear, dtype: WeightDtype, tileBytes: number): [number, number][] {
  const most = Math.floor(tileBytes / (linear.inputs * weightBytes(dtype)));
  const rows = Math.max(1, most < PANEL ? most : most - (most % PANEL));
  return Array.from({ length: Math.ceil(linear.outputs / rows) }, (_, i) => [
    i * rows,
    Math.min(rows, linear.outputs - i * rows),
  ]);
}

async function loadLowRank(
  update: LowRankUpdate,
  linear: Linear,
  name: string,
  upload: (values: ArrayBufferView<ArrayBuffer>, label: string) => BackendBuffer,
  signal?: AbortSignal,
): Promise<DeviceLowRank> {
  const { rank, scale } = update;
  const { left, right } = await update.load(signal);
  const { inputs, outputs, storage } = linear;
  const [rows, cols] = storage === 'out_in' ? [outputs, inputs] : [inputs, outputs];
  if (left.length !== rows * rank || right.length !== rank * cols) {
    throw new AmalgamError(
      'ShapeMismatch',
      `The adapter's factors for ${name} hold ${left.length} and ${counted(right.length, 'value')}, not [${rows}, ${rank}] and [${rank}, ${cols}].`,
      'The adapter was made for another model. Choose its own base.',
    );
  }
  const rank4 = Math.ceil(rank / 4) * 4;
  // rank filled up with zeros: `into` by rows, `outOf` by columns
  const into = new Float32Array(rank4 * inputs);
  const outOf = new Float32Array(outputs * rank4);
  const at = storage === 'out_in' ? { in: right, out: left } : { in: left, out: right };
  for (let k = 0; k < rank; k++) {
    for (let i = 0; i < inputs; i++) {
      into[k * inputs + i] = storage === 'out_in' ? at.in[k * inputs + i]! : at.in[i * rank + k]!;
    }
    for (let o = 0; o < outputs; o++) {
      outOf[o * rank4 + k] = storage === 'out_in' ? at.out[o * rank + k]! : at.out[k * outputs + o]!;
    }
  }
  return { into: upload(into, `${name}, into`), outOf: upload(outOf, `${name}, out of`), rank: rank4, scale };
}

// The token embedding, read row by row.

/** Bytes of table rows on the device at a time. */
export const TABLE_BYTES = 16 << 20;

/** Rows closer together than this are read at once. */
const GAP_BYTES = 64 << 10;

/** Bytes of rows cached on the host: a generation asks for the same few rows again and again. */
const KEPT_BYTES = 32 << 20;

export interface EmbeddingTable {
  /** Lets go of the rows on the host: they have changed. */
  forget(): void;
  /** Stored rows of these ids (ascending, no id twice), side by side. */
  rows(ids: readonly number[], signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>>;
}

/** The token embedding, read row by row: of a table that may be larger than the device only what a text uses. */
export function createEmbeddingTable(reader: WeightReader, tensor: string, width: number): EmbeddingTable {
  const { name, weight } = reader.stored(tensor);
  const rowBytes = width * weightBytes(weight.dtype);
  const kept = new Map<number, Uint8Array>();
  return {
    forget: () => kept.clear(),
    async rows(ids, signal) {
      const out = new Uint8Array(ids.length * rowBytes);
      const put = (i: number, row: Uint8Array) => out.set(row, i * rowBytes);
      for (let i = 0; i < ids.length; ) {
        const row = kept.get(ids[i]!);
        if (row) {
          put(i++, row);
          continue;
        }
        let end = i + 1;
        const near = (j: number) =>
          (ids[j]! - ids[j - 1]!) * rowBytes <= GAP_BYTES && (ids[j]! - ids[i]!) * rowBytes < TABLE_BYTES;
        while (end < ids.length && !kept.has(ids[end]!) && near(end)) end++;
        const first = ids[i]!;
        const bytes = await reader.source.read(
          name,
          first * rowBytes,
          (ids[end - 1]! + 1) * rowBytes,
          signal,
        );
        for (; i < end; i++) {
          const at = (ids[i]! - first) * rowBytes;
          const found = bytes.slice(at, at + rowBytes);
          put(i, found);
          if ((kept.size + 1) * rowBytes <= KEPT_BYTES) kept.set(ids[i]!, found);
        }
      }
      return out;
    },
  };
}
