/** Element counts that a merge reports, counted again in plain loops on the files it read and wrote. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { goldenFolder } from '../../../e2e/goldens';
import { mergeInNode, readTensors } from '../../../e2e/merge-in-node';
import { memoryFolder } from '../../inputs/memory-models.test.support';

const golden = goldenFolder('mergekit');
const MODELS = ['a', 'b', 'c'];
const bytes = (name: string) => Uint8Array.from(readFileSync(join(golden, `in_${name}.safetensors`)));
const config = readFileSync(join(golden, 'config.json'), 'utf8');
const folders = Object.fromEntries(
  ['base', ...MODELS].map((name) => [
    name,
    memoryFolder(name, { 'config.json': config, 'model.safetensors': bytes(name) }),
  ]),
);
const stored = new Map(['base', ...MODELS].map((name) => [name, readTensors(bytes(name), name)]));

type Numbers = Record<string, number | string>;

async function merge(method: string, model: Numbers, parameters: Numbers = {}, names = MODELS) {
  const models = names.map((name, i) => ({
    model: name,
    parameters: { weight: [1, -0.7, 0.4][i]!, ...model },
  }));
  const recipe = { merge_method: method, base_model: 'base', dtype: 'bfloat16', models, parameters };
  const { reports, tensors } = await mergeInNode(JSON.stringify(recipe), golden, folders, 4096);
  const merged = reports.filter((r) => !r.copied);
  expect(merged.length).toBeGreaterThan(3);
  return { merged, tensors };
}

/** To bfloat16, to nearest even, by arithmetic: a step of the exponent's size. */
function toBf16(x: number): number {
  if (x === 0) return 0;
  const step = 2 ** (Math.max(-126, Math.floor(Math.log2(Math.abs(x)))) - 7);
  const [low, rest] = [Math.floor(x / step), x / step - Math.floor(x / step)];
  return (rest > 0.5 || (rest === 0.5 && low % 2 !== 0) ? low + 1 : low) * step;
}

it.each([
  ['ties', { density: 0.2 }, {}, MODELS],
  ['dare_linear', { density: 0.3 }, {}, MODELS],
  ['task_arithmetic', { weight: 0.01 }, {}, MODELS],
  ['della', { density: 0.4 }, {}, MODELS],
  ['model_stock', {}, {}, MODELS],
  ['ram', {}, {}, MODELS],
  ['nearswap', {}, { t: 0.001 }, ['a']],
  ['arcee_fusion', {}, {}, ['a']],
] as [string, Numbers, Numbers, string[]][])(
  '%s: merged sparsity is what the written file shows',
  async (method, model, parameters, names) => {
    const { merged, tensors } = await merge(method, model, parameters, names);
    for (const { name, counts } of merged) {
      const now = tensors.get(name)!.values;
      const equal = stored
        .get('base')!
        .get(name)!
        .values.filter((w, e) => now[e] === toBf16(w)).length;
      expect(counts!.atBase, name).toBe(equal);
    }
  },
);

it('overlaps and lost changes are those of masks made by sorting', async () => {
  const density = 0.3;
  const { merged } = await merge('ties', { density });
  let lostAtAll = 0;
  for (const { name, counts } of merged) {
    const base = stored.get('base')!.get(name)!.values;
    const kept = MODELS.map((model) => {
      const tau = stored
        .get(model)!
        .get(name)!
        .values.map((w, e) => Math.fround(w - base[e]!));
      const order = [...tau.keys()].sort((a, b) => Math.abs(tau[b]!) - Math.abs(tau[a]!) || a - b);
      const top = new Set(order.slice(0, Math.max(1, Math.floor(density * tau.length))));
      return tau.map((value, e) => (top.has(e) ? value : 0));
    });
    const weighted = kept.map((tau, i) => tau.map((value) => value * Math.fround([1, -0.7, 0.4][i]!)));
    const votes = base.map((_, e) => weighted.reduce((sum, tau) => Math.fround(sum + tau[e]!), 0));
    const count = (holds: (e: number) => boolean) => base.reduce((n, _, e) => n + (holds(e) ? 1 : 0), 0);
    expect(counts!.shared, name).toEqual(
      kept.map((a) => kept.map((b) => count((e) => a[e] !== 0 && b[e] !== 0))),
    );
    const lost = weighted.map((tau) => count((e) => (votes[e]! >= 0 ? tau[e]! < 0 : tau[e]! > 0)));
    expect(counts!.lost, name).toEqual(lost);
    lostAtAll += lost.reduce((a, b) => a + b, 0);
  }
  expect(lostAtAll).toBeGreaterThan(0);
});

it('methods without an election or masks of their own say so', async () => {
  const { merged } = await merge('task_arithmetic', {});
  expect(merged[0]!.counts!.lost).toEqual([]);
  const karcher = await merge('karcher', {});
  expect(karcher.merged[0]!.counts).toMatchObject({ shared: [], lost: [] });
});

it('della: what is rescaled by a chance of its own has a norm after rescaling alone', async () => {
  const { merged } = await merge('della', { density: 0.5 }, { rescale: '1/probability' });
  for (const { contributors } of merged) {
    for (const c of contributors) {
      expect(c.keptNorm).toBeNull();
      expect(c.rescaledNorm).toBeGreaterThan(0);
    }
  }
});
