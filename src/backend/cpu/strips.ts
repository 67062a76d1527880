/**
 * Kernels in WebAssembly that can be run on a part of their elements: a tile goes through all of them strip by strip, so
 * that what one writes is still in the cache when the next one reads it. Each is the twin of the kernel of the same id.
 */
import { BLOCK } from '../kernel';
import { COMBINE_STATS } from '../kernels/combine';
import { WINDOW_COUNTS } from '../kernels/count-window';
import { DTYPE_CODE, INPUT_WORDS, SLOT_FORM } from '../kernels/decode';
import { pairCount } from '../kernels/gram';
import { HISTOGRAM_BINS, HISTOGRAM_COPIES, HISTOGRAM_ELEMENTS } from '../kernels/histogram';
import type { Address, KernelExports } from './kernel-exports';

/** Elements of a strip: whole blocks, and one workgroup of the histogram. */
export const STRIP = HISTOGRAM_ELEMENTS;

/** Scratch of the kernels, in the page of memory that is never given away. */
export const SCRATCH: Address = 64;

/** A block of merged values on their way to the output dtype: in the same page, behind what `combine` needs. */
const MERGED: Address = 40 * 1024;

/** One dispatch on elements [begin, begin + n). */
export interface Strip {
  params: Readonly<Record<string, number>>;
  /** Address of a buffer. */
  at(buffer: string): Address;
  /** Bytes of a buffer. */
  size(buffer: string): number;
  /** What a dispatch finds out at its first strip. */
  memo: { small?: number };
  /** All of the memory as words and as floats. */
  words: Uint32Array;
  floats: Float32Array;
  begin: number;
  n: number;
}

export interface StripKernel {
  /** Works on all of a dispatch at once. */
  rows?: true;
  /** Strips are whole multiples of as many elements: rows. Default: whole blocks. */
  unit?(params: Readonly<Record<string, number>>): number;
  /** False where the dispatch needs what only the twin can do. */
  fits?(params: Readonly<Record<string, number>>): boolean;
  run(kernels: KernelExports, strip: Strip): void;
}

const block = (begin: number) => begin / BLOCK;

/** Calls `make` for every block of a strip, which leaves merged values at {@link MERGED}, and packs them. */
function packBlocks(k: KernelExports, s: Strip, make: (at: number, n: number) => void): void {
  const { dtype, status } = s.params as Record<string, number>;
  const width = dtype === DTYPE_CODE.F32 ? 4 : 2;
  let bad = 0;
  for (let at = s.begin; at < s.begin + s.n; at += BLOCK) {
    const n = Math.min(BLOCK, s.begin + s.n - at);
    make(at, n);
    bad += k.encode(MERGED, s.at('packed') + at * width, n, dtype!);
  }
  addTo(s, 'status', status!, bad);
}

/** Adds to the counter at word `index` of a buffer. */
function addTo({ words, at }: Strip, buffer: string, index: number, count: number): void {
  words[at(buffer) / 4 + index]! += count;
}

const tiny = (c: number) => c !== 0 && Math.abs(c) < 2 ** -10;

/** By kernel id. */
export const STRIP_KERNELS: ReadonlyMap<string, StripKernel> = new Map<string, StripKernel>([
  [
    'decode',
    {
      run(k, s) {
        const { stride, slots } = s.params as Record<string, number>;
        const values = s.at('values') + s.begin * 4;
        for (let slot = 0; slot < slots!; slot++) {
          const input = s.at('inputs') / 4 + slot * INPUT_WORDS;
          const [rawBegin, kind] = [s.words[input]!, s.words[input + 1]!];
          const [dtype, form] = [kind & 3, kind >> 2];
          const out = values + slot * stride! * 4;
          if (form === SLOT_FORM.leave) continue;
          const raw = s.at('raw') + rawBegin * 4 + s.begin * (dtype === DTYPE_CODE.F32 ? 4 : 2);
          addTo(s, 'status', slot, k.decode(raw, out, s.n, dtype));
          if (form === SLOT_FORM.change) k.subtract(out, values, s.n);
        }
      },
    },
  ],
  [
    'encode',
    {
      run(k, s) {
        const { dtype, status } = s.params as Record<string, number>;
        const width = dtype === DTYPE_CODE.F32 ? 4 : 2;
        const merged = s.at('merged') + s.begin * 4;
        k.changeSquares(
          s.at('values') + s.begin * 4,
          merged,
          s.n,
          s.at('sums') + block(s.begin) * 4,
          SCRATCH,
        );
        addTo(s, 'status', status!, k.encode(merged, s.at('packed') + s.begin * width, s.n, dtype!));
      },
    },
  ],
  [
    'subtract',
    {
      run(k, s) {
        k.subtract(s.at('values') + (s.params.slot! + s.begin) * 4, s.at('values') + s.begin * 4, s.n);
      },
    },
  ],
  [
    'weighted-sum',
    {
      fits: ({ elements, per }) => per! >= elements!,
      run(k, s) {
        const { slot, stride, count, anchor } = s.params as Record<string, number>;
        packBlocks(k, s, (at, n) => {
          const values = s.at('values') + (slot! + at) * 4;
          k.weightedSum(values, stride! * 4, count!, anchor!, s.at('coefficients'), MERGED, n);
          k.changeSquares(s.at('values') + at * 4, MERGED, n, s.at('sums') + block(at) * 4, SCRATCH);
        });
      },
    },
  ],
  [
    'combine',
    {
      run(k, s) {
        const { stride, models, election, zero_negative, lambda } = s.params as Record<string, number>;
        const table = s.at('coefficients') / 4;
        const sets = election === 0 ? 1 : 2 ** models!;
        const extreme = tiny(lambda!) || s.floats.subarray(table, table + 2 * models! + sets).some(tiny);
        packBlocks(k, s, (at, n) =>
          k.combine(
            s.at('values') + at * 4,
            stride! * 4,
            models!,
            n,
            table * 4,
            election!,
            zero_negative!,
            lambda!,
            extreme ? 1 : 0,
            MERGED,
            s.at('stats') + block(at) * COMBINE_STATS * 4,
            SCRATCH,
          ),
        );
      },
    },
  ],
  [
    'histogram',
    {
      run(k, s) {
        const { slot, shift, bins, prefix_shift, prefix, out } = s.params as Record<string, number>;
        const copy = out! + ((s.begin / HISTOGRAM_ELEMENTS) % HISTOGRAM_COPIES) * HISTOGRAM_BINS;
        const values = s.at('values') + (slot! + s.begin) * 4;
        k.histogram(values, s.n, shift!, bins! - 1, prefix_shift!, prefix!, s.at('bins') + copy * 4);
      },
    },
  ],
  [
    'count-equal',
    {
      run(k, s) {
        const { slot, key, out } = s.params as Record<string, number>;
        const values = s.at('values') + (slot! + s.begin) * 4;
        k.countEqual(values, s.n, key!, s.at('counts') + (out! + block(s.begin)) * 4);
      },
    },
  ],
  [
    'sample-keys',
    {
      run(k, s) {
        const { slot, first, step, out } = s.params as Record<string, number>;
        const values = s.at('values') + (slot! + s.begin) * 4;
        k.sampleKeys(values, s.n, first! + s.begin, step!, s.at('keys') + out! * 4);
      },
    },
  ],
  [
    'count-window',
    {
      run(k, s) {
        const { slot, lo, hi, out, base, room } = s.params as Record<string, number>;
        const counts = s.at('counts') + (out! + WINDOW_COUNTS * block(s.begin)) * 4;
        const values = s.at('values') + (slot! + s.begin) * 4;
        k.countWindow(values, s.n, lo!, hi!, counts, s.at('list') + base! * 4, room!);
      },
    },
  ],
  [
    'select-threshold',
    {
      run(k, s) {
        const p = s.params as Record<string, number>;
        const kept = k.selectThreshold(
          s.at('values') + (p.slot! + s.begin) * 4,
          s.n,
          p.first_block! + block(s.begin),
          p.key!,
          p.cut_block!,
          p.cut_quota!,
          p.inner_key!,
          p.inner_cut_block!,
          p.inner_cut_quota!,
        );
        addTo(s, 'kept', p.out!, kept);
      },
    },
  ],
  [
    'select-random',
    {
      run(k, s) {
        const { slot, first, below, key0, key1, out } = s.params as Record<string, number>;
        const values = s.at('values') + (slot! + s.begin) * 4;
        addTo(
          s,
          'kept',
          out!,
          k.selectRandom(values, s.n, (first! + s.begin) / 4, below!, key0!, key1!, SCRATCH),
        );
      },
    },
  ],
  [
    'gram',
    {
      fits: ({ run }) => run === BLOCK,
      run(k, s) {
        const { slot, stride, count } = s.params as Record<string, number>;
        const sums = s.at('sums') + block(s.begin) * pairCount(count!) * 4;
        k.gram(s.at('values') + (slot! + s.begin) * 4, stride! * 4, count!, s.n, sums, SCRATCH);
      },
    },
  ],
  [
    'absolute-sum',
    {
      run(k, s) {
        const { slot, out } = s.params as Record<string, number>;
        const sums = s.at('sums') + (out! + block(s.begin)) * 4;
        k.absoluteSum(s.at('values') + (slot! + s.begin) * 4, s.n, sums, SCRATCH);
      },
    },
  ],
  [
    'low-rank',
    {
      run(k, s) {
        const { first, cols, rank, slot, add, scale } = s.params as Record<string, number>;
        const [left, right] = [s.at('left'), s.at('right')];
        s.memo.small ??= k.hasSmall(left, s.size('left') / 4) || k.hasSmall(right, s.size('right') / 4);
        const out = s.at('values') + (slot! + s.begin) * 4;
        k.lowRank(left, right, cols!, rank!, out, first! + s.begin, s.n, scale!, add!, s.memo.small, SCRATCH);
      },
    },
  ],
  [
    'rank-digit',
    {
      unit: ({ cols }) => cols!,
      run(k, s) {
        const { slot, cols, shift, first, last } = s.params as Record<string, number>;
        const [from, to] = [s.at('order_in') + s.begin * 4, s.at('order_out') + s.begin * 4];
        const values = s.at('values') + (slot! + s.begin) * 4;
        k.rankDigit(values, s.n, cols!, shift!, first!, last!, from, to, SCRATCH);
      },
    },
  ],
  [
    'select-rank',
    {
      run(k, s) {
        const { slot, first, cols, key0, key1, out } = s.params as Record<string, number>;
        const values = s.at('values') + (slot! + s.begin) * 4;
        const ranks = s.at('ranks') + s.begin * 4;
        const counter = (first! + s.begin) / 4;
        const kept = k.selectRank(values, s.n, counter, ranks, s.at('table'), cols!, key0!, key1!, SCRATCH);
        addTo(s, 'kept', out!, kept);
      },
    },
  ],
]);
