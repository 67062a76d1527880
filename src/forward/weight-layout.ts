/** Forms of weights on an engine. */
import type { Backend } from '../backend/backend';
import { DTYPE_CODE } from '../backend/kernels/encoding';
import { ENCODED_BLOCK, ENCODED_CODE, PANEL, panelRowBytes } from '../backend/kernels/matmul';
import { type WeightDtype, weightBytes } from '../formats/dtype';
import type { Linear } from '../models/architecture';

/** Stored rows one after the other; in panels, as the processor multiplies fastest; either at eight bits. */
export type WeightLayout = 'rows' | 'panels' | 'eight-bit rows' | 'eight-bit panels';

type WeightEngine = Pick<Backend, 'kind' | 'allocateWeights'>;

/** Whether an engine can have weights of eight bits: on the processor those that threads share. */
export function hasEightBits({ kind, allocateWeights }: WeightEngine): boolean {
  return kind === 'webgpu' || allocateWeights !== undefined;
}

/** How an engine has a matrix. @param encoded at eight bits where that can be: there are blocks of 32 inputs */
export function layoutOn(engine: WeightEngine, inputs: number, encoded: boolean): WeightLayout {
  const form = engine.kind === 'cpu' ? 'panels' : 'rows';
  const isEncoded = encoded && hasEightBits(engine) && inputs % ENCODED_BLOCK.inputs === 0;
  return isEncoded ? `eight-bit ${form}` : form;
}

/** Bytes of a row of weights. */
export function rowBytesOf(layout: WeightLayout, dtype: WeightDtype, inputs: number): number {
  if (layout === 'eight-bit rows') return (inputs / ENCODED_BLOCK.inputs) * ENCODED_BLOCK.deviceBytes;
  return panelRowBytes(layout === 'eight-bit panels' ? ENCODED_CODE : DTYPE_CODE[dtype], inputs);
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
