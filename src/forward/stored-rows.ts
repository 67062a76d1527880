/** Output rows of linear layers as they are stored, read in pieces. */
import { PANEL } from '../backend/kernels/matmul';
import { weightBytes } from '../formats/dtype';
import type { Linear } from '../models/architecture';
import type { WeightSource, WeightSummand } from './weight-source';

/** Bytes asked for at once. */
const READ_BYTES = 8 << 20;

/** Takes rows, from row `row` of what was asked for on. */
export type TakeRows = (row: number, stored: Uint8Array<ArrayBuffer>) => void;

interface Outputs {
  linear: Linear;
  summand: WeightSummand;
  first: number;
  outputs: number;
  take: TakeRows;
}

/** Reads output rows [first, first + outputs) of a summand of a linear layer. */
export async function readOutputs(source: WeightSource, asked: Outputs, signal?: AbortSignal): Promise<void> {
  const { linear, summand, first, outputs, take } = asked;
  const { name, dtype } = summand;
  const rowBytes = linear.inputs * weightBytes(dtype);
  if (linear.storage === 'in_out') {
    take(0, new Uint8Array((await transposed(source, asked, signal)).buffer));
    return;
  }
  const begin = first + (linear.stack?.index ?? 0) * linear.outputs;
  const step = Math.max(1, Math.floor(READ_BYTES / rowBytes / PANEL)) * PANEL;
  for (let row = 0; row < outputs; row += step) {
    const end = begin + Math.min(row + step, outputs);
    take(row, await source.read(name, (begin + row) * rowBytes, end * rowBytes, signal));
  }
}

/** Rows of outputs out of a weight stored [inputs, outputs]. */
async function transposed(
  source: WeightSource,
  { linear, summand: { name, dtype }, first, outputs }: Outputs,
  signal?: AbortSignal,
) {
  const { inputs, outputs: stride, stack } = linear;
  const width = weightBytes(dtype);
  const out = width === 4 ? new Uint32Array(inputs * outputs) : new Uint16Array(inputs * outputs);
  const rows = Math.max(1, Math.floor(READ_BYTES / (stride * width)));
  const skipped = (stack?.index ?? 0) * inputs;
  for (let row = 0; row < inputs; row += rows) {
    const end = Math.min(row + rows, inputs);
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
}
