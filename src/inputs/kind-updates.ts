/** Weights under an adapter that is no LoRA: a product that streams like one, or rows changed on the host. */
import { AmalgamError } from '../errors';
import { weightBytes } from '../formats/dtype';
import { decodeToF32 } from '../formats/half';
import { booleanField, numberField } from '../formats/json-fields';
import { splitLayer } from '../models/tensor-role';
import type { Adapter, OwnModule } from './adapter';
import type { AdaptedModule, OpenRows, PartIndices, PartValues, Rows } from './kinds/kind';
import type { Model, ModelTensor } from './model';
import type { Problems } from './problems';
import { dataTensor, derivedTensor, openMade } from './row-map';
import { type ReadTensor, readF32, weightDtype } from './stored-tensor';
import type { LowRank, MakeValues, TensorRef } from './tensor-view';

/** Most elements of a factor that is made of an adapter's tensors: a gigabyte of floats. A few of them can stand for many. */
const MAX_FACTOR = 2 ** 28;

/** An adapter that is applied to a model, and what takes the problems. */
export interface Applying {
  model: Model;
  adapter: Adapter;
  problems: Problems;
}

/** A weight, and the bias beside it, as the adapter's kind has them. What does not fit goes to `problems`. */
export function changedByKind(on: Applying, name: string, tensor: ModelTensor, own: OwnModule): ModelTensor {
  const { model, adapter, problems } = on;
  const { parts } = own;
  const stored = isStoredTransposed(model, adapter, name) ? 'transposed' : 'linear';
  const [rows, columns] = tensor.shape as [number, number];
  const [outputs, inputs] = stored === 'linear' ? [rows, columns] : [columns, rows];
  try {
    const module = moduleOf(on, name, own, outputs, inputs);
    if (tensor.shape.length !== 2)
      module.refuse(`changes a weight of [${tensor.shape}]; matrices can be merged`);
    const update = adapter.method!.update(module);
    if (update.form === 'product') {
      const { rank, scale } = update;
      if (rank * Math.max(inputs, outputs) > MAX_FACTOR)
        module.refuse(`makes factors of rank ${rank} for ${outputs} × ${inputs} weights`);
      const a = madeTensor(parts, [rank, inputs], update.right);
      const b = madeTensor(parts, [outputs, rank], update.left);
      return { ...tensor, view: { ...tensor.view, lowRank: { a, b, rank, scale, layout: stored } } };
    }
    const { origin } = tensor.view;
    const rowsOf = { origin, width: columns };
    const open = stored === 'linear' ? update.open : update.openStored;
    if (!open && (update.open || stored !== 'linear'))
      return module.refuse('changes weights that are stored as [in, out]');
    changeBias(model, name, outputs, parts, update.bias, rowsOf);
    if (!open) return tensor;
    const changed = changedRows(rowsOf, parts, open, rowsOf, update.partner);
    return { ...tensor, view: { ...tensor.view, origin: changed } };
  } catch (thrown) {
    if (!(thrown instanceof AmalgamError)) throw thrown;
    const { code, message, hint } = thrown;
    problems.error(code, message, hint, [tensor.name]);
    return tensor;
  }
}

/** GPT-2's Conv1D stores [in, out]; for an unknown family the adapter's config decides. */
function isStoredTransposed({ checkpoint: { family } }: Model, { config }: Adapter, name: string): boolean {
  return family ? family.linearStorage === 'in_out' && splitLayer(name) !== null : config.fanInFanOut;
}

const biasOf = (name: string) => name.replace(/weight$/, 'bias');

function changeBias(
  model: Model,
  name: string,
  outputs: number,
  parts: Parts,
  open: Rows['bias'],
  weight: RowsOf,
): void {
  const bias = model.tensors.get(biasOf(name));
  if (!open || !bias) return;
  const origin = changedRows({ origin: bias.view.origin, width: outputs }, parts, open, weight);
  model.tensors.set(biasOf(name), { ...bias, view: { ...bias.view, origin } });
}

function moduleOf(
  { model, adapter: { config, path, method, modules } }: Applying,
  name: string,
  own: OwnModule,
  outputs: number,
  inputs: number,
): AdaptedModule {
  const module = name.replace(/\.weight$/, '');
  const fields = { object: config.raw, fileName: config.fileName, code: 'AdapterInvalid' as const };
  return {
    name: module,
    ...own,
    outputs,
    inputs,
    hasBias: model.tensors.has(biasOf(name)),
    modules: modules.size,
    setting: (key) => config.raw.get(key) ?? undefined,
    number: (key, otherwise) => numberField(fields, key) ?? otherwise,
    flag: (key, otherwise) => booleanField(fields, key) ?? otherwise,
    refuse(what) {
      throw new AmalgamError(
        'AdapterUnsupported',
        `The ${method!.title} adapter ${path} ${what}.`,
        'Merge it into its base with PEFT (merge_and_unload) and use the result as a full model.',
      );
    },
  };
}

/**
 * DoRA on a weight whose outputs are columns (embeddings, Conv1D): W′ = (W + ΔW) · diag(m / ‖W + ΔW‖ per column). The
 * norms take a reading of the whole weight ahead of the first row.
 */
export function scaledColumns(
  tensor: ModelTensor,
  { a, b, rank, scale }: LowRank,
  magnitude: TensorRef,
): ModelTensor {
  const width = tensor.shape[1]!;
  const rowsOf = { origin: tensor.view.origin, width };
  const origin = changedRows(rowsOf, { a, b, magnitude }, async ({ values, eachRow }) => {
    const rows = a.shape[1]!;
    const add = (row: Float64Array, index: number) => {
      for (let k = 0; k < rank; k++) {
        const left = scale * values.a![k * rows + index]!;
        for (let c = 0; c < width; c++) row[c]! += left * values.b![c * rank + k]!;
      }
    };
    const squares = new Float64Array(width);
    await eachRow((stored, index) => {
      const row = Float64Array.from(stored);
      add(row, index);
      for (let c = 0; c < width; c++) squares[c]! += row[c]! ** 2;
    });
    const factor = squares.map((sum, c) => values.magnitude![c]! / Math.sqrt(sum));
    return (row, index) => {
      add(row, index);
      for (let c = 0; c < width; c++) row[c]! *= factor[c]!;
    };
  });
  return { ...tensor, view: { ...tensor.view, origin } };
}

// Tensors that are computed on the host when they are read: small ones whole, weights row by row.

/** Stored tensors by the name of their part. */
type Parts = Readonly<Record<string, TensorRef>>;

/** A tensor of `shape` whose values follow from the parts; they are read, and it is made, whole. */
export function madeTensor(
  parts: Parts,
  shape: readonly number[],
  make: (values: PartValues, indices: PartIndices) => Float32Array,
): TensorRef {
  const from = Object.values(parts);
  const elements = shape.reduce((n, extent) => n * extent, 1);
  const open = openMade(elements, async (read) => {
    const { values, indices } = await readParts(parts, read);
    return make(values, indices);
  });
  return derivedTensor(from[0]!, shape, from, open);
}

/** A factor times α over its rank, α being stored. */
export function scaledFactor(factor: TensorRef, alpha: TensorRef, rank: number): TensorRef {
  return dataTensor(factor, factor.shape, [factor, alpha], { id: 'scaled', params: { rank } }, scaledValues);
}

export const scaledValues: MakeValues<{ rank: number }> = async ([factor, alpha], { rank }, read) => {
  const [values, [by]] = await Promise.all([readF32(factor!, read), readF32(alpha!, read)]);
  const scale = by! / rank;
  if (scale !== 1) for (let i = 0; i < values.length; i++) values[i] = scale * values[i]!;
  return values;
};

/** A tensor row by row: `width` elements each. */
interface RowsOf {
  origin: TensorRef;
  width: number;
}

/**
 * `origin` with every row changed for itself. Rows are read in the runs that are asked for, so that memory does not grow
 * with the tensor; what `open` makes of the parts stays while the tensor is at work.
 *
 * @param all whose rows the change can visit before any is changed: a second reading, for what depends on all of them
 */
export function changedRows(
  { origin, width }: RowsOf,
  parts: Parts,
  open: OpenRows,
  all: RowsOf = { origin, width },
  partner?: Rows['partner'],
): TensorRef {
  const from = [...new Set([origin, all.origin, ...Object.values(parts)])];
  return derivedTensor(origin, origin.shape, from, async (read) => {
    const opened = await readParts(parts, read);
    const change = await open({ ...opened, eachRow: (visit) => eachRow(all, read, visit) });
    return async (begin, end) => {
      const first = Math.floor(begin / width);
      const rows = await readRows(origin, width, first, Math.ceil(end / width), read);
      const others =
        partner && (await partnersOf({ origin, width }, first, rows.length / width, partner, read));
      const [row, other] = [new Float64Array(width), new Float64Array(others ? width : 0)];
      for (let at = 0; at < rows.length; at += width) {
        row.set(rows.subarray(at, at + width));
        if (others) other.set(others.subarray(at, at + width));
        change(row, first + at / width, other);
        rows.set(row, at);
      }
      return rows.subarray(begin - first * width, end - first * width);
    };
  });
}

/** The partners of `count` rows from `first` on, read in runs. */
async function partnersOf(
  { origin, width }: RowsOf,
  first: number,
  count: number,
  partner: NonNullable<Rows['partner']>,
  read: ReadTensor,
): Promise<Float32Array> {
  const out = new Float32Array(count * width);
  for (let begin = 0, end = 1; begin < count; begin = end++) {
    const from = partner(first + begin);
    while (end < count && partner(first + end) === from + end - begin) end++;
    out.set(await readRows(origin, width, from, from + end - begin, read), begin * width);
  }
  return out;
}

/** Elements of the pieces in which all rows are visited. */
const PIECE = 1 << 20;

async function eachRow(
  { origin, width }: RowsOf,
  read: ReadTensor,
  visit: (row: Float32Array, index: number) => void,
): Promise<void> {
  const rows = origin.shape.reduce((n, extent) => n * extent, 1) / width;
  const step = Math.max(1, Math.floor(PIECE / width));
  for (let first = 0; first < rows; first += step) {
    const values = await readRows(origin, width, first, Math.min(rows, first + step), read);
    for (let at = 0; at < values.length; at += width)
      visit(values.subarray(at, at + width), first + at / width);
  }
}

async function readRows(
  origin: TensorRef,
  width: number,
  from: number,
  to: number,
  read: ReadTensor,
): Promise<Float32Array> {
  const dtype = weightDtype(origin);
  const bytes = weightBytes(dtype);
  const values = new Float32Array((to - from) * width);
  decodeToF32(await read(origin, from * width * bytes, to * width * bytes), dtype, values);
  return values;
}

async function readParts(
  parts: Parts,
  read: ReadTensor,
): Promise<{ values: PartValues; indices: PartIndices }> {
  const values: Record<string, Float32Array> = {};
  const indices: Record<string, Int32Array> = {};
  await Promise.all(
    Object.entries(parts).map(async ([name, ref]) => {
      if (ref.dtype !== 'I32' && ref.dtype !== 'I64') {
        values[name] = await readF32(ref, read);
        return;
      }
      const { buffer } = await read(ref, 0, ref.end - ref.begin);
      indices[name] =
        ref.dtype === 'I32' ? new Int32Array(buffer) : Int32Array.from(new BigInt64Array(buffer), Number);
    }),
  );
  return { values, indices };
}
