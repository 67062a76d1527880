import inputGramBlock from '../../../shaders/input-gram-block.wgsl?raw';
import inputGramTile from '../../../shaders/input-gram-tile.wgsl?raw';
import type { Backend } from '../backend';
import { defineKernel, SCRATCH } from '../kernel';

/** Most rows that a dispatch sums before it folds them into S. */
export const GRAM_ROWS = 2048;
/** The same where the processor does it: so many rows of two tiles stay in its first cache. */
const SOFTWARE_ROWS = 512;

const DECLARATION = {
  params: { rows: 'u32', first: 'u32', stride4: 'u32', begin4: 'u32', width4: 'u32', first_tile: 'u32' },
  buffers: { x: 'read', s: 'read_write' },
} as const;

/** S += x xᵀ in both forms; tiles are for real GPUs. See shaders/lib/input-gram.wgsl. */
export const inputGram = {
  block: defineKernel({
    ...DECLARATION,
    id: 'input-gram-block',
    wgsl: inputGramBlock,
    libraries: ['inputGram'],
    wasm(k, { params, at, n }) {
      const { rows, first, stride4, begin4, width4, first_tile } = params;
      const x = at('x') + (first * stride4 + begin4) * 16;
      k.inputGram(x, stride4 * 16, rows, width4 * 4, at('s'), first_tile, first_tile + n, SCRATCH);
    },
  }),
  tile: defineKernel({
    ...DECLARATION,
    id: 'input-gram-tile',
    wgsl: inputGramTile,
    libraries: ['inputGram'],
  }),
};

export type InputGramForm = keyof typeof inputGram;

/** The form for this engine, the width of its tiles in fours, the tiles of one workgroup, and the rows of one dispatch. */
export function inputGramForm(engine: Pick<Backend, 'software'>): {
  form: InputGramForm;
  side4: number;
  perGroup: number;
  rows: number;
} {
  return engine.software
    ? { form: 'block', side4: 2, perGroup: 64, rows: SOFTWARE_ROWS }
    : { form: 'tile', side4: 16, perGroup: 1, rows: GRAM_ROWS };
}
