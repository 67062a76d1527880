import { expect, it } from 'vitest';
import type { Backend } from '../../backend/backend';
import { createCpuBackend } from '../../backend/cpu/cpu-backend';
import { type ContractModel, contractModel, mergeModel, variantsOf } from '../methods/contract.cases';
import { ties } from '../methods/ties';
import type { Plan } from '../plan/plan';
import { openWorkspaceFor } from '../tensor/computation';
import { measureWholeModel } from './whole-model';

const [defaults] = variantsOf(ties);
const paper = {
  ...defaults!,
  parameters: { ...defaults!.parameters, semantics: 'paper' },
  models: [{ weight: 1, density: 0.2 }],
};
const keptOf = (merged: Awaited<ReturnType<typeof mergeModel>>) =>
  merged.reports.map((r) => r.contributors[0]?.kept);

it('tensors that a model leaves alone count among all its elements', async () => {
  const model = contractModel(ties, paper, 'F32', [
    [40, 64],
    [30, 64],
  ]);
  // the second tensor is the base's own, and so copied: as with an adapter that does not target it
  const [first, second] = model.tensors;
  const origin = second!.base!.origin;
  const untouched = {
    ...second!,
    copy: origin,
    models: [{ ...second!.models[0]!, view: { origin, onBase: true } }],
  };
  const merged = await mergeModel(createCpuBackend(), ties, { ...model, tensors: [first!, untouched] });
  // ⌊0.2 · 70 · 64⌋ + 1 of the whole model, all in the tensor that changes
  expect(keptOf(merged)).toEqual([Math.floor(0.2 * 70 * 64) + 1, undefined]);
  expect(merged.bytes.get(untouched.name)).toEqual(model.bytes.get(origin));
});

it('equal magnitudes at the threshold all stay, whatever the order of the tensors', async () => {
  const model = contractModel(ties, paper, 'BF16', [
    [40, 64],
    [30, 64],
    [20, 64],
  ]);
  const there = await mergeModel(createCpuBackend(), ties, model);
  const back = await mergeModel(createCpuBackend(), ties, { ...model, tensors: model.tensors.toReversed() });
  expect(keptOf(back)).toEqual(keptOf(there).reverse());
  for (const [name, bytes] of there.bytes) expect(back.bytes.get(name)).toEqual(bytes);
});

/** An engine that remembers the most bytes it held at a time. */
function measured(engine: Backend): { engine: Backend; peak(): number } {
  let held = 0;
  let peak = 0;
  return {
    peak: () => peak,
    engine: {
      ...engine,
      allocate(byteLength, label) {
        const buffer = engine.allocate(byteLength, label);
        held += buffer.byteLength;
        peak = Math.max(peak, held);
        return buffer;
      },
      free(buffer) {
        held -= buffer.byteLength;
        engine.free(buffer);
      },
    },
  };
}

it('memory does not grow with the model', async () => {
  const peaks: number[] = [];
  for (const count of [2, 12]) {
    const shapes = Array.from({ length: count }, () => [64, 64]);
    const model: ContractModel = contractModel(ties, paper, 'F32', shapes);
    const { engine, peak } = measured(createCpuBackend());
    await mergeModel(engine, ties, model, 4096);
    peaks.push(peak());
  }
  expect(peaks[1]).toBe(peaks[0]);
});

it('tells how far the passes over the whole model are: every tensor of every pass, and all of its bytes', async () => {
  const model = contractModel(ties, paper, 'F32', [
    [40, 64],
    [30, 64],
  ]);
  const told: string[] = [];
  let bytes = 0;
  const engine = createCpuBackend();
  const methods = new Map([[ties.id, ties]]);
  const work = openWorkspaceFor(model.tensors, methods, engine, 4096);
  await measureWholeModel({
    plan: { tensors: model.tensors } as unknown as Plan,
    methods,
    work,
    engine,
    read: model.read,
    seed: 0,
    nonFinite: 'stop',
    progress: {
      begin: (total, tensors) => told.push(`begin ${total} ${tensors}`),
      advance(tensor, read) {
        told.push(tensor);
        bytes += read;
      },
      end: () => told.push('end'),
    },
  });
  const [first, second] = model.tensors.map((tensor) => tensor.name);
  // three digits of the threshold, and one pass for the majority sign; base and model are read each time
  const total = 4 * 2 * (40 + 30) * 64 * 4;
  const passes = Array.from({ length: 4 }, () => [first, second]).flat();
  expect(told).toEqual([`begin ${total} 8`, ...passes, 'end']);
  expect(bytes).toBe(total);
});
