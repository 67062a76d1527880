/**
 * Products of the forward pass in WebAssembly. They take a whole dispatch and sum in f32, as a graphics device does; their
 * twins sum in f64, so the two agree within the tolerance each states in the header of its WGSL, not to the bit. A row's
 * sums are made in one order, whatever the rows beside it.
 */
import { type AttentionGroup, firstColumn, GROUP_ROWS, groupAt } from '../kernels/attention-groups';
import { attentionMix } from '../kernels/attention-mix';
import { attentionScores } from '../kernels/attention-scores';
import { inputGram } from '../kernels/input-gram';
import { matmul } from '../kernels/matmul';
import { SCRATCH, type Strip, type StripKernel } from './strips';

const DTYPES = ['F32', 'F16', 'BF16'] as const;

const linear = (form: 'block' | 'line', code: number): [string, StripKernel] => [
  matmul[form][DTYPES[code]!].id,
  {
    rows: true,
    run(k, s) {
      const p = s.params as Record<string, number>;
      const inputs = p.inputs4! * 4;
      const weights = s.at('weights') + p.w_first! * inputs * (code === 0 ? 4 : 2);
      const bias = p.biased === 1 ? s.at('bias') : 0;
      const y = s.at('y') + p.y_begin! * 4;
      const multiply = form === 'block' ? k.matmulBlock : k.matmulLine;
      multiply(
        weights,
        code,
        inputs,
        p.outputs!,
        s.at('x'),
        p.x_stride4! * 16,
        p.rows!,
        bias,
        y,
        p.y_stride! * 4,
        p.add!,
        p.scale!,
        SCRATCH,
      );
    },
  },
];

/** Every head of every group of a dispatch: its number, its group, and its first key. */
export function eachHead(
  { params, words, at, size }: Strip,
  work: (index: number, head: number, group: AttentionGroup, first: number) => void,
): void {
  const { groups, group_begin, heads, window } = params as Record<string, number>;
  const begin = at('groups') / 4;
  const all = words.subarray(begin, begin + size('groups') / 4);
  for (let g = 0; g < groups!; g++) {
    const group = groupAt(all, group_begin! + g);
    const first = firstColumn(group, window!);
    for (let head = 0; head < heads!; head++) work(g * heads! + head, head, group, first);
  }
}

/** Bytes of a head, of the heads of a row, of a row of keys, and of a row of scores. */
function attentionPitches({ heads, share, dim4, span }: Readonly<Record<string, number>>) {
  const head = dim4! * 16;
  return { head, row: heads! * head, key: (heads! / share!) * head, line: span! * 4 };
}

/** By kernel id. The forms for real GPUs are not among them: this engine never chooses those. */
export const FORWARD_KERNELS: ReadonlyMap<string, StripKernel> = new Map<string, StripKernel>([
  ...DTYPES.flatMap((_, code) => [linear('block', code), linear('line', code)]),
  [
    attentionScores.id,
    {
      rows: true,
      run(k, s) {
        const { share, dim4, sloped, scale, cap } = s.params as Record<string, number>;
        const pitch = attentionPitches(s.params);
        const slopes = s.at('slopes') / 4;
        eachHead(s, (index, head, { row, rows, origin, position }, first) => {
          k.attentionScores(
            s.at('q') + row * pitch.row + head * pitch.head,
            pitch.row,
            rows,
            s.at('k') + (origin + first) * pitch.key + Math.floor(head / share!) * pitch.head,
            pitch.key,
            position + rows - first,
            dim4! * 4,
            s.at('scores') + index * GROUP_ROWS * pitch.line,
            pitch.line,
            scale!,
            cap!,
            sloped === 1 ? s.floats[slopes + head]! : 0,
            first,
          );
        });
      },
    },
  ],
  [
    attentionMix.id,
    {
      rows: true,
      run(k, s) {
        const { share, dim4 } = s.params as Record<string, number>;
        const pitch = attentionPitches(s.params);
        eachHead(s, (index, head, { row, rows, origin, position }, first) => {
          k.attentionMix(
            s.at('shares') + index * GROUP_ROWS * pitch.line,
            pitch.line,
            rows,
            s.at('v') + (origin + first) * pitch.key + Math.floor(head / share!) * pitch.head,
            pitch.key,
            position + rows - first,
            dim4! * 4,
            s.at('y') + row * pitch.row + head * pitch.head,
            pitch.row,
          );
        });
      },
    },
  ],
  [
    inputGram.block.id,
    {
      rows: true,
      run(k, s) {
        const { rows, first, stride4, begin4, width4, first_tile } = s.params as Record<string, number>;
        const x = s.at('x') + (first! * stride4! + begin4!) * 16;
        const end = first_tile! + s.n;
        k.inputGram(x, stride4! * 16, rows!, width4! * 4, s.at('s'), first_tile!, end, SCRATCH);
      },
    },
  ],
]);
