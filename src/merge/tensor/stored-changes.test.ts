/** Merges of tensors as they are stored: the bytes and the statistics of one kernel after another over slots. */
import { describe, expect, it } from 'vitest';
import { createCpuBackend } from '../../backend/cpu/cpu-backend';
import { BLOCK } from '../../backend/kernel';
import { philox } from '../../backend/philox';
import { type WeightDtype, weightBytes } from '../../formats/dtype';
import { encodeFromF32 } from '../../formats/half';
import type { TensorRef, TensorView } from '../../inputs/tensor-view';
import { methods } from '../methods';
import type { TensorPlan } from '../plan/plan';
import { computeTensor, openComputed, openWorkspaceFor } from './computation';

const engine = createCpuBackend();
const COLS = 173;

/** Values of every kind, block by block: ordinary ones; some close to the smallest; many equal; −0; NaN and infinities. */
function valuesOf(elements: number, seed: number, special: boolean, base?: Float32Array) {
  const words = new Uint32Array(4);
  return Float32Array.from({ length: elements }, (_, e) => {
    philox(e, 0, seed, 5, words);
    const kind = Math.floor(e / BLOCK) % 7;
    const bell = (words[0]! + words[1]! + words[2]!) / 2 ** 32 - 1.5;
    if (kind === 2 && words[3]! % 3 === 0) return bell * 2 ** ((words[0]! % 30) - 130);
    if (kind === 3) return ((words[3]! % 5) - 2) / 16;
    if (kind === 4 && words[3]! % 50 === 0) return words[3]! % 100 ? 0 : -0;
    if (kind === 5 && special && words[3]! % 997 === 0) return [Number.NaN, Infinity, -Infinity][e % 3]!;
    if (kind === 6 && words[3]! % 997 === 0) return bell * 2 ** 60;
    if (base && words[3]! % 4 === 0) return base[e]!;
    return base ? base[e]! + bell * 0.01 : bell * 0.1;
  });
}

interface Shape {
  rows: number;
  models: number;
  dtype: WeightDtype;
  /** Dtypes that differ, adapters, or values that are not finite. */
  mixed?: boolean;
  adapters?: 'some' | 'all';
  special?: boolean;
}

function tensorOf({ rows, models, dtype, mixed, adapters, special }: Shape, hasBase: boolean) {
  const elements = rows * COLS;
  const store = new Map<TensorRef, Uint8Array<ArrayBuffer>>();
  const put = (key: string, values: Float32Array, kind: WeightDtype, shape: number[]): TensorRef => {
    const bytes = new Uint8Array(values.length * weightBytes(kind));
    encodeFromF32(values, kind, bytes);
    const ref = { folder: key, file: 'm', key, dtype: kind, shape, begin: 0, end: bytes.length };
    store.set(ref, bytes);
    return ref;
  };
  const kinds: WeightDtype[] = ['F32', 'BF16', 'F16'];
  const base = valuesOf(elements, 1, special ?? false);
  const origin = put('base', base, dtype, [rows, COLS]);
  const views = Array.from({ length: models }, (_, i): TensorView => {
    if (adapters && i % 3 === 2) return { origin, onBase: true };
    if (adapters === 'all' || (adapters && i % 3 !== 1)) {
      // the changes of one are close to the smallest numbers in its last rows
      const factor = (name: string, n: number, shape: number[]) => {
        const tiny = (value: number, e: number) => (i === 1 && e > n / 2 ? value * 2 ** -55 : value);
        return put(`${name}${i}`, valuesOf(n, 20 + i, false).map(tiny), 'F32', shape);
      };
      const a = factor('a', 4 * COLS, [4, COLS]);
      const b = factor('b', 4 * rows, [rows, 4]);
      return { origin, onBase: true, lowRank: { a, b, rank: 4, scale: 0.5, layout: 'linear' } };
    }
    const values = valuesOf(elements, 2 + i, special ?? false, base);
    return { origin: put(`m${i}`, values, mixed ? kinds[i % 3]! : dtype, [rows, COLS]), onBase: false };
  });
  const plan = (method: string, settings: Settings): TensorPlan => ({
    name: 'model.layers.0.mlp.up_proj.weight',
    shape: [rows, COLS],
    elements,
    dtype: mixed ? 'F16' : dtype,
    role: { layer: 0, module: 'mlp.up_proj', kind: 'linear' },
    ...(hasBase ? { base: { origin, onBase: true } } : {}),
    models: views.map((view, i) => ({ id: `m${i}`, view, parameters: settings.model(i) })),
    parameters: settings.parameters ?? {},
    method,
  });
  const read = async (ref: TensorRef, begin: number, end: number) => store.get(ref)!.slice(begin, end);
  return { plan, read };
}

interface Settings {
  model(i: number): Record<string, number>;
  parameters?: Record<string, number | boolean | string>;
}

/** Bytes and statistics of a merge. */
async function merge(
  { plan, read }: ReturnType<typeof tensorOf>,
  id: string,
  settings: Settings,
  blocks: number,
  inSlots: boolean,
) {
  const method = methods.find((m) => m.id === id)!;
  const tensor = plan(id, settings);
  const work = openWorkspaceFor([tensor], new Map([[id, method]]), engine, blocks * BLOCK);
  const task = openComputed(tensor, method, work, read, undefined, inSlots);
  const pieces: string[] = [];
  const statistics = await computeTensor(task, method, { seed: 7, nonFinite: 'carry' }, async (bytes) => {
    pieces.push(Buffer.from(bytes).toString('base64'));
  });
  task.close();
  work.close();
  return { form: task.form, pieces, statistics };
}

const weights = (i: number) => ({ weight: [0.6, -0.4, 0.3, 0.8][i]! });
const sums = { normalize: true, lambda: 1.1, rescale: 'none', semantics: 'mergekit' };

const CASES: [id: string, settings: Settings][] = [
  ['linear', { model: (i) => ({ weight: [0.5, 0.25, 0.125, 1][i]! }), parameters: { normalize: true } }],
  ['linear', { model: weights, parameters: { normalize: false } }],
  ['task_arithmetic', { model: weights, parameters: sums }],
  ['ties', { model: (i) => ({ ...weights(i), density: 0.2 + 0.1 * i }), parameters: sums }],
  ['ties', { model: (i) => ({ weight: 0.5, density: [0.3, 1, 0, 0.7][i]! }), parameters: sums }],
  ['breadcrumbs_ties', { model: (i) => ({ ...weights(i), density: 0.5, gamma: 0.01 }), parameters: sums }],
  // as many as are dropped at the top stay at the bottom, zeros among them
  ['breadcrumbs', { model: (i) => ({ ...weights(i), density: 0.95, gamma: 0.05 }), parameters: sums }],
  ['dare_ties', { model: (i) => ({ ...weights(i), density: 0.5 }), parameters: { ...sums, rescale: 'l1' } }],
  ['dare_linear', { model: (i) => ({ weight: 1, density: [0.3, 1, 0, 0.7][i]! }), parameters: sums }],
  [
    'della',
    {
      model: (i) => ({ ...weights(i), density: 0.5, epsilon: 0.1 }),
      parameters: { ...sums, rescale: 'l1' },
    },
  ],
  // a coefficient that makes products subnormal, and one that overflows
  ['task_arithmetic', { model: (i) => ({ weight: [1e-30, 1e30, 2 ** -20, 5000][i]! }), parameters: sums }],
];

/** Tensors by shape: the same for every method. */
const made = new Map<string, ReturnType<typeof tensorOf>>();

describe.each(CASES)('%s %#', (id, settings) => {
  const isSum = id === 'linear';
  const shapes: [string, Shape][] = [
    ['one model', { rows: 120, models: 1, dtype: 'BF16' }],
    ['two models', { rows: 190, models: 2, dtype: 'BF16' }],
    ['three models', { rows: 167, models: 3, dtype: 'BF16' }],
    ['four models', { rows: 167, models: 4, dtype: 'BF16' }],
    ['F32', { rows: 167, models: 2, dtype: 'F32' }],
    ['F16', { rows: 167, models: 3, dtype: 'F16' }],
    ['dtypes that differ', { rows: 167, models: 3, dtype: 'BF16', mixed: true }],
    ['less than a block', { rows: 5, models: 2, dtype: 'BF16' }],
    ['what is not finite', { rows: 167, models: 2, dtype: 'BF16', special: true }],
    ...(isSum
      ? []
      : ([
          ['adapters', { rows: 167, models: 4, dtype: 'BF16', adapters: 'some' }],
          ['adapters alone', { rows: 167, models: 3, dtype: 'BF16', adapters: 'all' }],
          ['one adapter', { rows: 167, models: 1, dtype: 'BF16', adapters: 'all', special: true }],
        ] as [string, Shape][])),
  ];
  it.each(shapes)('%s', async (_, shape) => {
    const key = JSON.stringify([shape, isSum]);
    const tensor = made.get(key) ?? tensorOf(shape, !isSum);
    made.set(key, tensor);
    for (const blocks of [2, 64]) {
      const wanted = await merge(tensor, id, settings, blocks, true);
      const got = await merge(tensor, id, settings, blocks, false);
      expect(wanted.form).toBe(isSum ? 'weights' : 'delta');
      expect(got.form).toBe(isSum ? 'stored' : 'stored changes');
      expect(got.pieces).toEqual(wanted.pieces);
      expect(got.statistics).toEqual(wanted.statistics);
    }
  });
});

it('more models than there is room for are merged in slots', async () => {
  const tensor = tensorOf({ rows: 9, models: 5, dtype: 'BF16' }, true);
  const settings: Settings = { model: () => ({ weight: 0.2, density: 0.5 }), parameters: sums };
  expect((await merge(tensor, 'ties', settings, 2, false)).form).toBe('delta');
});
