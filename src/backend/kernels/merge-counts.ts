import mergeCountsWgsl from '../../../shaders/merge-counts.wgsl?raw';
import { exact } from '../exact';
import { BLOCK, defineKernel, SCRATCH } from '../kernel';
import { composeWgsl } from '../wgsl';
import { DTYPE_CODE } from './decode';
import { packWords } from './encode';
import { pairCount } from './gram';

/** Words that {@link mergeCounts} adds to for `models` contributors: at the base, lost of each, shared by each pair. */
export function mergeCountWords(models: number): number {
  return 1 + models + pairCount(models);
}

/** Counts elements at the base, changes lost in the sign election, and changes shared by pairs. See shaders/merge-counts.wgsl. */
export const mergeCounts = defineKernel({
  id: 'merge-counts',
  wgsl: composeWgsl(mergeCountsWgsl, 'half'),
  params: {
    elements: 'u32',
    stride: 'u32',
    models: 'u32',
    election: 'u32',
    zero_negative: 'u32',
    dtype: 'u32',
  },
  buffers: { values: 'read', coefficients: 'read', packed: 'read', counts: 'read_write' },
  unit: () => BLOCK,
  wasm(k, s) {
    const { stride, models, election, zero_negative, dtype } = s.params;
    k.mergeCounts(
      s.at('values') + s.begin * 4,
      stride * 4,
      models,
      s.n,
      s.at('coefficients'),
      election,
      zero_negative,
      s.at('packed') + s.begin * (dtype === DTYPE_CODE.F32 ? 4 : 2),
      dtype,
      s.at('counts'),
      SCRATCH,
    );
  },
  cpu({ params, f32, u32 }) {
    const { elements, stride, models: n, election, zero_negative, dtype } = params;
    const values = f32('values');
    const coefficients = f32('coefficients');
    const counts = u32('counts');
    counts[0]! += equalElements(u32('values'), u32('packed'), elements, dtype);
    for (let e = 0; e < elements; e++) {
      let [total, votes] = [0, 0];
      const ballots: number[] = [];
      let pair = 1 + n;
      for (let i = 0; i < n; i++) {
        const value = values[(i + 1) * stride + e]!;
        const s = exact(value * coefficients[n + i]!);
        const d = exact(s * coefficients[i]!);
        const ballot = election >= 2 ? s : d;
        ballots.push(ballot);
        total = exact(total + d);
        votes = exact(votes + (election === 3 ? Math.sign(ballot) : ballot));
        for (let j = i; j < n; j++, pair++) {
          if (value !== 0 && values[(j + 1) * stride + e] !== 0) counts[pair]! += 1;
        }
      }
      // NaN comes through whoever is elected
      if (election === 0 || Number.isNaN(total)) continue;
      const plus = votes > 0 || (votes === 0 && zero_negative === 0);
      for (let i = 0; i < n; i++) if (plus ? ballots[i]! < 0 : ballots[i]! > 0) counts[1 + i]! += 1;
    }
  },
});

/** How many packed values are those of the base rounded to the output dtype. */
function equalElements(base: Uint32Array, packed: Uint32Array, elements: number, dtype: number): number {
  const rounded = new Uint32Array(packed.length);
  packWords(base, elements, dtype, rounded);
  const view = (words: Uint32Array) =>
    dtype === 0 ? words : new Uint16Array(words.buffer, words.byteOffset, words.length * 2);
  const [a, b] = [view(rounded), view(packed)];
  const magnitude = dtype === 0 ? 0x7fffffff : 0x7fff;
  let equal = 0;
  for (let e = 0; e < elements; e++) {
    if (a[e] === b[e] || ((a[e]! | b[e]!) & magnitude) === 0) equal++;
  }
  return equal;
}
