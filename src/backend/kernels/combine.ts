import combineWgsl from '../../../shaders/combine.wgsl?raw';
import { dotBlock, eachBlock } from '../blocks';
import { exact, hasSmall } from '../exact';
import { BLOCK, defineKernel, SCRATCH } from '../kernel';
import { composeWgsl } from '../wgsl';
import { packBlocks, packWords } from './encode';

/** Ballots of the sign election, by number; as in shaders/combine.wgsl. */
export const ELECTION = { none: 0, weighted: 1, values: 2, signs: 3 } as const;
/** Words of statistics per block: conflicts, Σ delta², ballot sums above and below zero. */
export const COMBINE_STATS = 4;

/** Whether products with this coefficient may be subnormal. */
const tiny = (c: number) => c !== 0 && Math.abs(c) < 2 ** -10;

/**
 * Weighted (elected) sum of task vectors, divided, scaled, added to the base and packed into the output dtype; adds the
 * number of non-finite results to status[status]. See shaders/combine.wgsl.
 */
export const combine = defineKernel({
  id: 'combine',
  wgsl: composeWgsl(combineWgsl, 'half', 'exact4', 'pack'),
  params: {
    elements: 'u32',
    stride: 'u32',
    models: 'u32',
    election: 'u32',
    zero_negative: 'u32',
    dtype: 'u32',
    status: 'u32',
    lambda: 'f32',
  },
  buffers: {
    values: 'read',
    coefficients: 'read',
    packed: 'read_write',
    stats: 'read_write',
    status: 'read_write',
  },
  unit: () => BLOCK,
  wasm(k, s) {
    const { stride, models, election, zero_negative, lambda } = s.params;
    const table = s.at('coefficients') / 4;
    const sets = election === 0 ? 1 : 2 ** models;
    const extreme = tiny(lambda) || s.floats.subarray(table, table + 2 * models + sets).some(tiny);
    packBlocks(k, s, (at, n, merged) =>
      k.combine(
        s.at('values') + at * 4,
        stride * 4,
        models,
        n,
        table * 4,
        election,
        zero_negative,
        lambda,
        extreme ? 1 : 0,
        merged,
        s.at('stats') + (at / BLOCK) * COMBINE_STATS * 4,
        SCRATCH,
      ),
    );
  },
  cpu({ params, f32, u32 }) {
    const { elements, stride, models: n, election, zero_negative } = params;
    const lambda = Math.fround(params.lambda);
    const values = f32('values');
    const bits = u32('values');
    const coefficients = f32('coefficients');
    const out = new Float32Array(elements);
    const outBits = new Uint32Array(out.buffer);
    const counts = u32('stats');
    const squares = f32('stats');
    // one block of changes at a time, model after model: simple loops over arrays that stay in cache
    const changes = new Float32Array(n * BLOCK);
    const total = new Float32Array(BLOCK);
    const ballots = new Float32Array(election >= 2 ? BLOCK : 0);
    const votes = election >= 2 ? ballots : total;
    const positive = new Uint32Array(BLOCK);
    const negative = new Uint32Array(BLOCK);
    const delta = new Float32Array(BLOCK);
    const deltaBits = new Uint32Array(delta.buffer);
    const extreme = tiny(lambda) || coefficients.some(tiny);
    eachBlock(elements, (begin, end, block) => {
      const size = end - begin;
      let small = extreme;
      for (let i = 0; i <= n && !small; i++) small = hasSmall(bits, i * stride + begin, size);
      // values of at least 2^-50, four factors of at least 2^-10 and the cancelling of sums stay above 2^-126
      const round = small ? exact : Math.fround;
      total.fill(0);
      ballots.fill(0);
      positive.fill(0);
      negative.fill(0);
      for (let i = 0; i < n; i++) {
        const scale = coefficients[n + i]!;
        const weight = coefficients[i]!;
        const at = (i + 1) * stride + begin;
        const to = i * BLOCK;
        const bit = 1 << i;
        for (let e = 0; e < size; e++) {
          const s = round(values[at + e]! * scale);
          const d = round(s * weight);
          const ballot = election >= 2 ? s : d;
          changes[to + e] = d;
          total[e] = round(total[e]! + d);
          if (ballot > 0) positive[e]! |= bit;
          else if (ballot < 0) negative[e]! |= bit;
          if (election >= 2) ballots[e] = round(ballots[e]! + (election === 3 ? Math.sign(ballot) : ballot));
        }
      }
      const found = [0, 0, 0];
      for (let e = 0; e < size; e++) {
        if (positive[e] !== 0 && negative[e] !== 0) found[0]!++;
        if (votes[e]! > 0) found[1]!++;
        else if (votes[e]! < 0) found[2]!++;
      }
      const reciprocals = 2 * n;
      for (let e = 0; e < size; e++) {
        let mixed = total[e]!;
        let agreeing = 0;
        // NaN comes through whoever is elected
        if (election !== 0 && !Number.isNaN(mixed)) {
          const plus = votes[e]! > 0 || (votes[e] === 0 && zero_negative === 0);
          agreeing = plus ? positive[e]! : negative[e]!;
          mixed = 0;
          for (let i = 0; i < n; i++) {
            if (((agreeing >> i) & 1) === 1) mixed = round(mixed + changes[i * BLOCK + e]!);
          }
        }
        delta[e] = round(round(mixed * coefficients[reciprocals + agreeing]!) * lambda);
      }
      for (let e = 0; e < size; e++) {
        if (delta[e] === 0) outBits[begin + e] = bits[begin + e]!;
        else out[begin + e] = round(values[begin + e]! + delta[e]!);
      }
      counts[COMBINE_STATS * block] = found[0]!;
      squares[COMBINE_STATS * block + 1] = dotBlock(delta, 0, 0, size, hasSmall(deltaBits, 0, size));
      counts[COMBINE_STATS * block + 2] = found[1]!;
      counts[COMBINE_STATS * block + 3] = found[2]!;
    });
    u32('status')[params.status]! += packWords(outBits, elements, params.dtype, u32('packed'));
  },
});
