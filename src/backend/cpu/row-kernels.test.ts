/** Functions and ranks in WebAssembly against f64. */
import { describe, expect, it } from 'vitest';
import { encodeFromF32 } from '../../formats/half';
import { exact } from '../exact';
import { ACTIVATION_CODE } from '../kernels/activation';
import { floats } from '../kernels/forward-kernels.test.fixture';
import { erf } from '../special';
import { instantiateKernels } from './cpu-memory';

describe('functions against f64', () => {
  const memory = new WebAssembly.Memory({ initial: 64, maximum: 65_536 });
  const kernels = instantiateKernels(memory)!;
  const [from, to] = [1024, 2 ** 21];
  const count = 100_000;

  /** The largest error of f over evenly spread f32 in [low, high], as a share of `scale`. */
  function worst(
    low: number,
    high: number,
    run: (n: number) => void,
    f: (x: number) => number,
    scale: (exact: number, x: number) => number,
  ): number {
    const x = new Float32Array(memory.buffer, from, count);
    for (let i = 0; i < count; i++) x[i] = low + ((high - low) * i) / (count - 1);
    const given = x.slice();
    run(count);
    const y = new Float32Array(memory.buffer, to, count);
    return given.reduce((most, v, i) => Math.max(most, Math.abs(y[i]! - f(v)) / scale(f(v), v)), 0);
  }
  const activated = (kind: number) => (n: number) => kernels.activateRow(from, to, n, 0, kind);
  /** The distance from an f32 of this size to the next. */
  const ulp = (exact: number) => 2 ** (Math.floor(Math.log2(Math.max(Math.abs(exact), 1e-37))) - 23);
  const size = (_: number, x: number) => Math.abs(x) || 1;

  const tanh = (n: number) => {
    kernels.capLogits(from, n, 1, 1);
    new Uint8Array(memory.buffer).copyWithin(to, from, from + n * 4);
  };
  it.each([
    [-10, 10],
    [-0.7, 0.7],
    [-1e-3, 1e-3],
  ])('tanh over [%f, %f] within 2 ulp', (low, high) => {
    expect(worst(low, high, tanh, Math.tanh, ulp)).toBeLessThanOrEqual(2);
  });

  const silu = (x: number) => x / (1 + Math.exp(-x));
  it.each([
    [-80, 80],
    [-4, 4],
  ])('SiLU over [%f, %f] within 3 ulp', (low, high) => {
    expect(worst(low, high, activated(ACTIVATION_CODE.silu), silu, ulp)).toBeLessThanOrEqual(3);
  });

  it('both forms of GELU within 1.5e-7 of |x|', () => {
    const geluTanh = (x: number) =>
      0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));
    const geluErf = (x: number) => 0.5 * x * (1 + erf(x * Math.SQRT1_2));
    for (const span of [0.5, 3, 20]) {
      expect(worst(-span, span, activated(ACTIVATION_CODE.gelu_tanh), geluTanh, size)).toBeLessThan(1.5e-7);
      expect(worst(-span, span, activated(ACTIVATION_CODE.gelu_erf), geluErf, size)).toBeLessThan(1.5e-7);
    }
  });

  it('e^x in a softmax of x and 0 within 4 ulp, and 0 where it would be subnormal', () => {
    const at = (v: number) => {
      const line = new Float32Array(memory.buffer, from, 4);
      line.set([v, 0, 5, 5]);
      kernels.softmaxLine(from, 4, 0, 2);
      return [...line];
    };
    for (let i = 0; i <= 20_000; i++) {
      const v = Math.fround((-87 * i) / 20_000);
      const exact = Math.exp(v) / (1 + Math.exp(v));
      const [share, rest, ...hidden] = at(v) as [number, number, ...number[]];
      expect(Math.abs(share - exact) / ulp(exact)).toBeLessThanOrEqual(4);
      expect(rest).toBeGreaterThanOrEqual(0.5);
      expect(hidden).toEqual([0, 0]);
    }
    expect(at(-88)).toEqual([0, 1, 0, 0]);
    expect(at(-1e30)).toEqual([0, 1, 0, 0]);
  });

  it('what is not finite does not become finite', () => {
    const x = new Float32Array(memory.buffer, from, 8);
    const bad = [Number.NaN, Number.POSITIVE_INFINITY];
    for (const kind of Object.values(ACTIVATION_CODE)) {
      x.set([...bad, 1, 2, 3, 4, 5, Number.NaN]);
      kernels.activateRow(from, to, 7, 0, kind);
      const y = [...new Float32Array(memory.buffer, to, 7)];
      expect(y.map(Number.isFinite)).toEqual([false, false, true, true, true, true, true]);
    }
    for (const v of bad) {
      x.set([1, v, 1, 1]);
      kernels.softmaxLine(from, 4, 0, 4);
      expect([...x.subarray(0, 4)].some(Number.isFinite) && !x.subarray(0, 4).some(Number.isNaN)).toBe(false);
    }
  });
});

describe('ranks of |τ| in rows', () => {
  const memory = new WebAssembly.Memory({ initial: 64, maximum: 65_536 });
  const kernels = instantiateKernels(memory)!;
  const random = floats(3 * 5000, 31, 1);
  const kinds: [string, (x: number, i: number) => number][] = [
    ['of f32', (x) => x],
    ['of bfloat16, with zeros', (x, i) => (i % 5 ? Math.round(x * 2 ** 7) * 2 ** -12 : -0)],
    ['of either sign', (_, i) => (i % 2 ? 1 : -1)],
    ['of two exponents', (_, i) => (i % 3 ? 2 : -4)],
    ['of every bit', (x, i) => (i % 4 === 0 ? 3e38 * x : i % 4 === 1 ? 1e-38 * x : x)],
  ];
  const widths = [1, 2, 7, 33, 896, 2048, 2049, 4864];
  const rows = 3;
  it.each(kinds)('%s are those of a stable sort', (_, make) => {
    for (const cols of widths) {
      const values = random.slice(0, rows * cols).map(make);
      const [at, spare, ranks] = [65_536, 2 ** 20, 2 ** 21];
      new Float32Array(memory.buffer, at, rows * cols).set(values);
      kernels.rankRows(at, rows * cols, cols, spare, ranks, 64);
      const found = new Uint32Array(memory.buffer, ranks, rows * cols);
      for (let row = 0; row < rows; row++) {
        const size = values.subarray(row * cols, (row + 1) * cols).map(Math.abs);
        const sorted = [...size.keys()].sort((a, b) => size[a]! - size[b]! || b - a);
        const order = Uint32Array.from({ length: cols });
        for (const [rank, index] of sorted.entries()) order[index] = rank;
        expect(found.slice(row * cols, (row + 1) * cols), `${cols} columns`).toEqual(order);
      }
    }
  });

  it.each(kinds)('%s select the same elements where they are not told', (_, make) => {
    for (const cols of widths) {
      for (const epsilon of [0, 0.15, 0.45]) {
        const n = rows * cols;
        // as decode leaves them: nothing subnormal
        const values = random.slice(0, n).map((x, i) => exact(make(x, i)));
        const below = Float64Array.from(
          { length: cols },
          (_, r) => (0.5 - epsilon + (2 * epsilon * r) / cols) * 2 ** 32,
        );
        const [at, spare, ranks, table] = [65_536, 2 ** 20, 2 ** 21, 2 ** 21 + 2 ** 20];
        new Uint32Array(memory.buffer, table, cols).set(below);
        new Float32Array(memory.buffer, table + cols * 4, cols).fill(1);
        const bits = new Uint32Array(memory.buffer, at, n);
        const selected = (select: () => number) => {
          new Float32Array(memory.buffer, at, n).set(values);
          return { kept: select(), bits: bits.slice() };
        };
        const told = selected(() => {
          kernels.rankRows(at, n, cols, spare, ranks, 64);
          return kernels.selectRank(at, n, 1024, ranks, table, cols, 5, 6, 64);
        });
        const untold = selected(() => kernels.selectRows(at, n, 4096, cols, ranks, table, 5, 6, 64));
        expect(untold, `${cols} columns, ε ${epsilon}`).toEqual(told);
      }
    }
  });

  it.each([
    ['BF16', 2],
    ['F16', 1],
    ['F32', 0],
  ] as const)('of changes as they are stored, %s, are drawn as those of changes in slots', (dtype, code) => {
    const sources = 57_344;
    const [table, row, mask, slot, base, own] = [1, 2, 3, 4, 5, 6].map((i) => i * 2 ** 18) as [
      ...[number, number, number, number, number, number],
    ];
    for (const cols of widths) {
      const n = rows * cols;
      const below = Float64Array.from({ length: cols }, (_, r) => (0.4 + (0.2 * r) / cols) * 2 ** 32);
      new Uint32Array(memory.buffer, table, cols).set(below);
      const from = random.slice(0, n);
      for (const [at, values] of [
        [base, from],
        [own, from.map((x, i) => (i % 7 === 0 ? x : x + random[n - 1 - i]! / 64))],
      ] as const) {
        encodeFromF32(values, dtype, new Uint8Array(memory.buffer, at, n * (code === 0 ? 4 : 2)));
      }
      new Uint32Array(memory.buffer, sources, 6).set([base, code, 1, own, code, 2]);
      // what lies before the bits stays
      const words = new Uint32Array(memory.buffer, mask, Math.ceil((n + 3) / 32)).fill(0xffffffff);
      const drawn = kernels.drawRanks(sources, 1, n, 4096, cols, row, table, 5, 6, mask, 3, 64);
      const bits = words.slice();
      const changes = new Float32Array(memory.buffer, slot, n);
      kernels.decode(base, row, n, code);
      kernels.decode(own, slot, n, code);
      kernels.subtract(slot, row, n);
      const left = changes.map((x, e) => ((bits[(e + 3) >> 5]! >> ((e + 3) & 31)) & 1 ? x : 0));
      expect(kernels.selectRows(slot, n, 4096, cols, row, table, 5, 6, 64), `${cols} columns`).toBe(drawn);
      expect(left, `${cols} columns`).toEqual(changes);
      expect(bits[0]! & 7).toBe(7);
    }
  });
});
