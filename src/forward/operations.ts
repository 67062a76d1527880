/** The kernels of the forward pass as operations on rows; each enqueues one or a few dispatches. */
import type { BackendBuffer } from '../backend/backend';
import {
  ACTIVATION_CODE,
  activate,
  activateRare,
  gateRows,
  NORM_CODE,
  norm,
  normLine,
  RARE_CODE,
} from '../backend/kernels/activation';
import { fewRowsForm, matmul, matmulFew, matmulForm, matmulPacked } from '../backend/kernels/matmul';
import { countNonFinite } from '../backend/kernels/statistics';
import { addScaled } from '../backend/kernels/sums';
import type { WeightDtype } from '../formats/dtype';
import type { Activation, Mlp, Norm } from '../models/architecture';
import type { DeviceLinear } from './device-weights';
import type { Queue } from './queue';
import type { WeightLayout } from './weight-layout';

/** f32 rows on the device: row r begins at r · stride. */
export interface RowBuffer {
  buffer: BackendBuffer;
  stride: number;
  /** Norm that linear layers take along as they read them ({@link Operations.takesNorm}). */
  norm?: DeviceNorm;
}

/** A norm with its weights on the device. */
export interface DeviceNorm {
  norm: Norm;
  weight: BackendBuffer;
  bias?: BackendBuffer;
}

/** Column of x for a column of y. */
interface GateLayout {
  begin?: number;
  group?: number;
  groupStride?: number;
  broadcast?: boolean;
  /** One row of x for all. */
  oneRow?: boolean;
}

/** Rows [first, first + outputs) of a weight buffer. */
interface WeightRows {
  buffer: BackendBuffer;
  dtype: WeightDtype;
  inputs: number;
  first: number;
  outputs: number;
  /** One number for each row of the buffer ({@link DeviceTile}). */
  bias?: BackendBuffer;
  /** Summands in the buffer, so many rows apart, where there are more than these rows. */
  stacked?: { summands: number; step: number };
  /** Default: rows. In panels `first` is a multiple of their outputs. */
  layout?: WeightLayout;
}

/** Low-rank update of layers side by side, behind its first factors. */
interface JoinedUpdate {
  /** [rows, layers, rank] */
  narrow: BackendBuffer;
  /** [outputs, rank] */
  outOf: BackendBuffer;
  rank: number;
  scale: number;
  /** First output of each layer. */
  begins: readonly number[];
}

/** Layers side by side whose updates one product takes along. */
const MOST_JOINED = 3;
/** Outputs of a part of a product are a multiple of them. */
const PART = 64;
/** Beyond every output. */
const NOWHERE = 0xffffffff;

export interface Operations {
  readonly queue: Queue;
  /** Bound where a kernel wants a buffer it will not read. */
  readonly nothing: BackendBuffer;
  /**
   * y = x·Wᵀ + b of layers side by side, and their low-rank updates; layers that lie side by side in memory go at once.
   * @param scratch room for [rows, layers · rank] of their updates
   * @param add onto what y holds
   */
  linear(
    layers: readonly DeviceLinear[],
    x: RowBuffer,
    y: RowBuffer,
    rows: number,
    scratch: BackendBuffer,
    add?: boolean,
  ): Promise<void>;
  /** Whether layers over so few rows take this norm of their input along. */
  takesNorm(norm: DeviceNorm, rows: number): boolean;
  /**
   * y = f(gate) · up, where the layers' outputs are gate and up and one dispatch does it.
   * @returns whether it did
   */
  gatedLinear(
    layers: readonly DeviceLinear[],
    activation: Activation,
    x: RowBuffer,
    y: RowBuffer,
    rows: number,
    scratch: BackendBuffer,
  ): Promise<boolean>;
  /** y[·, begin …] = scale · x · (rows [first, first + outputs) of a weight buffer)ᵀ + bias, or onto what y holds. */
  product(
    weights: WeightRows,
    x: RowBuffer,
    y: RowBuffer,
    rows: number,
    at?: { begin?: number; add?: boolean; scale?: number; gate?: number; update?: JoinedUpdate },
  ): Promise<void>;
  /** `groups` norms side by side in every row, `stride` apart in x. */
  norm(
    n: DeviceNorm,
    x: RowBuffer,
    y: RowBuffer,
    rows: number,
    heads?: { begin: number; groups: number; stride: number },
  ): void;
  /** @param xielu αp, αn, β and ε of an xIELU */
  activate(
    mlp: Pick<Mlp, 'inner' | 'gated' | 'activation'>,
    x: RowBuffer,
    y: RowBuffer,
    rows: number,
    xielu?: readonly number[],
  ): void;
  /** y ← y · f(x), `width` columns from `begin` of x on; columns come in groups of `group`, `groupStride` apart (one factor each where `broadcast`). */
  gate(x: RowBuffer, y: RowBuffer, rows: number, width: number, kind: number, at?: GateLayout): void;
  /** y += scale · x over `elements`. */
  add(x: BackendBuffer, y: BackendBuffer, scale: number, elements: number): void;
  /** counts[slot] += NaN and infinite elements of x. */
  countNonFinite(x: BackendBuffer, elements: number, counts: BackendBuffer, slot: number): void;
}

/** Tiles of layers side by side, with the column of y where each begins; those that lie one behind the other are one. */
function joinedTiles(layers: readonly DeviceLinear[]): (WeightRows & { begin: number; scale: number })[] {
  const joined: (WeightRows & { begin: number; scale: number })[] = [];
  let begin = 0;
  for (const { inputs, dtype, scale, tiles, outputs: all } of layers) {
    for (const { first, row, outputs, weights, layout, bias } of tiles) {
      const last = joined.at(-1);
      const isNext = last?.buffer === weights && last.first + last.outputs === row && last.scale === scale;
      if (isNext) last.outputs += outputs;
      else {
        const tile = { buffer: weights, dtype, inputs, first: row, outputs, layout, ...(bias && { bias }) };
        joined.push({ ...tile, begin: begin + first, scale });
      }
    }
    begin += all;
  }
  return joined;
}

const isRare = (activation: Activation): activation is keyof typeof RARE_CODE => activation in RARE_CODE;

export function createOperations(queue: Queue): Operations {
  const nothing = queue.allocate(16, 'nothing');

  const multiply = (
    weights: WeightRows,
    x: RowBuffer,
    y: RowBuffer,
    rows: number,
    { begin = 0, add = false, scale = 1, gate = 0, update = undefined as JoinedUpdate | undefined } = {},
  ) => {
    const { engine } = queue;
    const params = {
      rows,
      outputs: weights.outputs,
      inputs4: weights.inputs / 4,
      w_first: weights.first,
      x_stride4: x.stride / 4,
      y_stride: y.stride,
      y_begin: begin,
      add: add ? 1 : 0,
      biased: weights.bias ? 1 : 0,
      scale,
    };
    const buffers = { weights: weights.buffer, x: x.buffer, bias: weights.bias ?? nothing, y: y.buffer };
    const { layout = 'rows', stacked = { summands: 1, step: 0 } } = weights;
    const work = rows * weights.inputs * weights.outputs * stacked.summands * (gate > 0 ? 2 : 1);
    const dtype = layout.startsWith('eight-bit') ? 'Q8' : weights.dtype;
    const few = layout.endsWith('rows') ? fewRowsForm(engine, rows) : undefined;
    if (few) {
      const { norm: kind, weight } = x.norm ?? {};
      const norm_kind = kind ? 1 + NORM_CODE[kind.kind] : 0;
      queue.run(
        matmulFew[few][dtype],
        {
          params: {
            ...{ ...params, norm_kind, gate, epsilon: kind?.epsilon ?? 0 },
            layers: update?.begins.length ?? 0,
            second: update?.begins[1] ?? NOWHERE,
            third: update?.begins[2] ?? NOWHERE,
            rank4: (update?.rank ?? 0) / 4,
            summands: stacked.summands,
            w_step: stacked.step,
            update_scale: scale * (update?.scale ?? 0),
          },
          buffers: {
            ...{ ...buffers, norm: weight ?? nothing },
            narrow: update?.narrow ?? nothing,
            out_of: update?.outOf ?? nothing,
          },
        },
        work,
      );
      return;
    }
    const forms = layout.endsWith('panels') ? matmulPacked : matmul[matmulForm(engine)];
    queue.run(forms[dtype], { params, buffers }, work);
  };

  /** The product, in parts of its outputs where it is much work at once. */
  const product: Operations['product'] = async (weights, x, y, rows, { begin = 0, ...at } = {}) => {
    const { outputs, inputs, first, stacked } = weights;
    const isWhole = fewRowsForm(queue.engine, rows) !== undefined;
    const ofOutput = rows * inputs * (stacked?.summands ?? 1);
    for (let done = 0; done < outputs; ) {
      const most = Math.max(PART, Math.floor(queue.workUnderWay / ofOutput / PART) * PART);
      const count = isWhole ? outputs : Math.min(most, outputs - done);
      await queue.breathe(ofOutput * count);
      const part = { ...weights, first: first + done, outputs: count };
      multiply(part, x, y, rows, { begin: begin + done, ...at });
      done += count;
    }
  };

  /** How many summands a product of these layers takes along. */
  const stackedIn = (layers: readonly DeviceLinear[], tiles: number, rows: number): WeightRows['stacked'] => {
    const [{ summands, step }] = layers as [DeviceLinear];
    const isOne = tiles === 1 && fewRowsForm(queue.engine, rows) !== undefined;
    return isOne && summands && step && layers.every((layer) => layer.step === step)
      ? { summands: 1 + summands.length, step }
      : undefined;
  };

  /**
   * Takes x through the first factors of layers whose updates lie in one pair of buffers, so that their product takes the rest
   * along; undefined where there is no update, or it goes by itself.
   */
  const beginUpdate = (
    layers: readonly DeviceLinear[],
    tiles: number,
    x: RowBuffer,
    rows: number,
    narrow: BackendBuffer,
  ): JoinedUpdate | undefined => {
    const found = layers.flatMap(({ lowRank }) => lowRank ?? []);
    const [first] = found;
    if (!first || tiles > 1 || layers.length > MOST_JOINED || !fewRowsForm(queue.engine, rows))
      return undefined;
    if (found.some(({ into }) => into !== first.into)) return undefined;
    const { into, outOf, rank, scale } = first;
    const { inputs } = layers[0]!;
    const outputs = layers.length * rank;
    const down = { buffer: into, dtype: 'F32' as const, inputs, first: 0, outputs };
    multiply(down, x, { buffer: narrow, stride: outputs }, rows);
    const begins = layers.map((_, i) => layers.slice(0, i).reduce((sum, layer) => sum + layer.outputs, 0));
    return { narrow, outOf, rank, scale, begins };
  };

  return {
    queue,
    nothing,
    async linear(layers, x, y, rows, scratch, add = false) {
      const tiles = joinedTiles(layers);
      const stacked = stackedIn(layers, tiles.length, rows);
      const update = beginUpdate(layers, tiles.length, x, rows, scratch);
      for (const { begin, scale, ...weights } of tiles) {
        const own = { ...weights, ...(stacked && { stacked }) };
        await product(own, x, y, rows, { begin, scale, add, ...(update && { update }) });
      }
      let begin = 0;
      for (const { inputs, outputs, lowRank, scale: factor } of update ? [] : layers) {
        if (lowRank) {
          const { into, outOf, rank, scale, intoRow, outRow } = lowRank;
          const narrow = { buffer: scratch, stride: rank };
          const down = { buffer: into, dtype: 'F32' as const, inputs, first: intoRow, outputs: rank };
          const up = { buffer: outOf, dtype: 'F32' as const, inputs: rank, first: outRow, outputs };
          await product(down, x, narrow, rows);
          await product(up, narrow, y, rows, { begin, add: true, scale: factor * scale });
        }
        begin += outputs;
      }
      const most = stacked ? 0 : Math.max(...layers.map(({ summands }) => summands?.length ?? 0));
      for (let k = 0; k < most; k++) {
        const added = layers.map((layer) => layer.summands?.[k] ?? { ...layer, tiles: [] });
        for (const { begin: at, scale, ...weights } of joinedTiles(added))
          if (scale !== 0) await product(weights, x, y, rows, { begin: at, scale, add: true });
      }
    },
    takesNorm: ({ norm: { kind, bias } }, rows) =>
      NORM_CODE[kind] <= NORM_CODE.rms_plus_one &&
      bias === undefined &&
      fewRowsForm(queue.engine, rows) === 'vector',
    async gatedLinear(layers, activation, x, y, rows, scratch) {
      const tiles = joinedTiles(layers);
      const isWhole = tiles.length === 1 && fewRowsForm(queue.engine, rows) !== undefined;
      if (!isWhole || isRare(activation)) return false;
      const stacked = stackedIn(layers, 1, rows);
      if (!stacked && layers.some(({ summands }) => summands)) return false;
      const update = beginUpdate(layers, 1, x, rows, scratch);
      if (!update && layers.some(({ lowRank }) => lowRank)) return false;
      const { scale, begin: _, ...weights } = tiles[0]!;
      const gate = 1 + ACTIVATION_CODE[activation];
      const outputs = weights.outputs / 2;
      const own = { ...weights, outputs, ...(stacked && { stacked }) };
      await product(own, x, y, rows, { scale, gate, ...(update && { update }) });
      return true;
    },
    product,
    norm(n, x, y, rows, heads = { begin: 0, groups: 1, stride: 0 }) {
      const { software } = queue.engine;
      queue.run(software ? normLine : norm, {
        params: {
          rows,
          groups: heads.groups,
          group_stride4: heads.stride / 4,
          width4: n.norm.width / 4,
          x_begin4: heads.begin / 4,
          x_stride4: x.stride / 4,
          y_stride4: y.stride / 4,
          kind: NORM_CODE[n.norm.kind],
          biased: n.bias ? 1 : 0,
          epsilon: n.norm.epsilon,
        },
        buffers: { x: x.buffer, weight: n.weight, bias: n.bias ?? nothing, y: y.buffer },
      });
    },
    activate({ inner, gated, activation }, x, y, rows, [xp = 0, xn = 0, beta = 0, floor = 0] = []) {
      const buffers = { x: x.buffer, y: y.buffer };
      const shape = { rows, inner, x_stride: x.stride, y_stride: y.stride, gated: gated ? 1 : 0 };
      if (isRare(activation)) {
        const params = { ...shape, kind: RARE_CODE[activation], xp, xn, beta, floor };
        queue.run(activateRare, { params, buffers });
      } else queue.run(activate, { params: { ...shape, kind: ACTIVATION_CODE[activation] }, buffers });
    },
    gate(x, y, rows, width, kind, at = {}) {
      const { begin = 0, group = width, groupStride = 0, broadcast, oneRow } = at;
      queue.run(gateRows, {
        params: {
          rows,
          width,
          kind,
          x_begin: begin,
          x_stride: oneRow ? 0 : x.stride,
          group,
          group_stride: groupStride,
          unit: broadcast ? 0 : 1,
          y_stride: y.stride,
        },
        buffers: { x: x.buffer, y: y.buffer },
      });
    },
    add(x, y, scale, elements) {
      queue.run(addScaled, { params: { elements, scale }, buffers: { x, y } });
    },
    countNonFinite(x, elements, counts, slot) {
      queue.run(countNonFinite, { params: { elements, slot }, buffers: { x, counts } });
    },
  };
}
