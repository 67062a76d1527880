/** Changes that are LoRAs, decomposed from their factors: the merge is that of the models they make. */
import { expect, test, vi } from 'vitest';
import { createCpuBackend } from '../../backend/cpu/cpu-backend';
import type { TensorRef } from '../../inputs/tensor-view';
import { methodById } from '../methods';
import type { ResolvedParameters, TensorPlan } from '../plan/plan';
import { computeTensor, openComputed, openWorkspaceFor } from './computation';
import * as decomposition from './decomposition';
import { noise } from './delta-pipeline.cases';

const engine = createCpuBackend();
const RANK = 4;
const MODELS = ['a', 'b', 'c'];

/** The change of a merge, of models as LoRAs or as the weights that these make. */
async function changeOf(id: string, how: 'factors' | 'weights', [rows, cols]: [number, number], extra = {}) {
  const bytes = new Map<TensorRef, Float32Array<ArrayBuffer>>();
  const put = (key: string, values: Float32Array<ArrayBuffer>, shape: number[]): TensorRef => {
    const ref = { folder: '', file: '', key, dtype: 'F32' as const, shape, begin: 0, end: values.byteLength };
    bytes.set(ref, values);
    return ref;
  };
  const base = noise(rows * cols, 1, 0.05);
  const origin = put('base', base, [rows, cols]);
  const method = methodById.get(id)!;
  const defaults = Object.fromEntries(
    Object.entries(method.parameters).map(([name, spec]) => [name, spec.default!]),
  );
  const parameters: ResolvedParameters = { ...defaults, ...extra };
  const plan: TensorPlan = {
    ...{
      name: 'model.layers.0.mlp.up_proj.weight',
      shape: [rows, cols],
      elements: rows * cols,
      dtype: 'F32',
    },
    role: { layer: 0, module: 'mlp.up_proj', kind: 'linear' },
    ...{ method: id, parameters, base: { origin, onBase: true } },
    models: MODELS.map((model, i) => {
      const own = { weight: 1 + i / 4, density: 0.3 };
      const [a, b] = [noise(RANK * cols, 10 + i, 0.1), noise(rows * RANK, 20 + i, 0.1)];
      if (how === 'factors') {
        const lowRank = { a: put(`${model}.a`, a, [RANK, cols]), b: put(`${model}.b`, b, [rows, RANK]) };
        const view = {
          origin,
          onBase: true,
          lowRank: { ...lowRank, rank: RANK, scale: 0.5, layout: 'linear' as const },
        };
        return { id: model, parameters: own, view };
      }
      const whole = base.map((w, e) => {
        let sum = 0;
        for (let k = 0; k < RANK; k++) sum += b[Math.floor(e / cols) * RANK + k]! * a[k * cols + (e % cols)]!;
        return w + sum / 2;
      });
      return { id: model, parameters: own, view: { origin: put(model, whole, [rows, cols]), onBase: false } };
    }),
  };
  const work = openWorkspaceFor([plan], methodById, engine);
  const task = openComputed(
    plan,
    method,
    work,
    async (ref, begin, end) => new Uint8Array(bytes.get(ref)!.buffer.slice(begin, end)),
  );
  const out: number[] = [];
  const report = await computeTensor(task, method, { seed: 3, nonFinite: 'stop' }, async (piece) => {
    for (const value of new Float32Array(piece.slice().buffer)) out.push(value);
  });
  task.close();
  work.close();
  return { change: out.map((w, e) => w - base[e]!), report };
}

test.each([
  ['ties', { space: 'knots' }],
  ['dare_ties', { space: 'knots' }],
  ['tsv_m', {}],
  ['iso_c', {}],
  ['iso_cts', {}],
])('%s of LoRAs is that of the models they make', async (id, extra) => {
  const shape: [number, number] = [48, 40];
  const [one, other] = [
    await changeOf(id, 'factors', shape, extra),
    await changeOf(id, 'weights', shape, extra),
  ];
  const size = Math.max(...other.change.map(Math.abs));
  expect(size).toBeGreaterThan(0.01);
  const off = Math.max(...one.change.map((x, e) => Math.abs(x - other.change[e]!)));
  expect(off).toBeLessThan(2e-5 * size);
  const kept = ({ report }: typeof one) => report.contributors.map((c) => c.kept);
  expect(kept(one)).toEqual(kept(other));
});

test('a matrix of LoRAs is decomposed by its factors alone', async () => {
  const whole = vi.spyOn(decomposition, 'decompose');
  const shape: [number, number] = [300, 70];
  const { change } = await changeOf('tsv_m', 'factors', shape);
  expect(change.some((x) => x > 0.01)).toBe(true);
  expect(whole).not.toHaveBeenCalled();
  await changeOf('tsv_m', 'weights', shape);
  expect(whole).toHaveBeenCalled();
  whole.mockRestore();
});
