import { join } from 'node:path';
import { expect, test } from 'vitest';
import { diskFolder, SAMPLES } from '../../../e2e/disk-folder';
import { planInNode } from '../../../e2e/merge-in-node';
import { openModels } from '../../host/models';
import { sampledWords } from '../../reports/sampled-changes';
import type { ModelFolder } from '../../sources/model-folder';
import { deltaStatistics } from './delta-statistics.test.support';
import { measure, sampleChanges } from './sampled-changes';

/** A folder that counts what is read of its files. */
function counted(folder: ModelFolder, onRead: (bytes: number) => void): ModelFolder {
  const files = folder.files.map((file) => ({
    ...file,
    open() {
      const source = file.open();
      return {
        ...source,
        read(begin: number, end: number, signal?: AbortSignal) {
          onRead(end - begin);
          return source.read(begin, end, signal);
        },
      };
    },
  }));
  return { ...folder, files };
}

test('of models and LoRAs: what all of them measured says, from a small part of the bytes', async () => {
  const recipe = {
    merge_method: 'task_arithmetic',
    base_model: 'base',
    models: ['base+kitchen', 'base+harbour', 'workshop'].map((model) => ({
      model,
      parameters: { weight: 1 },
    })),
  };
  const names = ['base', 'kitchen', 'harbour', 'workshop'];
  const folders = await Promise.all(names.map((name) => diskFolder(name, join(SAMPLES, name))));
  const { plan, read } = await planInNode(
    JSON.stringify(recipe),
    SAMPLES,
    Object.fromEntries(folders.map((folder) => [folder.path, folder])),
  );
  let bytes = 0;
  const models = openModels(() => ({ url: 'https://hub.invalid' }));
  for (const folder of folders) await models.add(counted(folder, (read) => (bytes += read)));
  bytes = 0;
  const sampled = (await sampleChanges(plan, models))!;
  expect(bytes).toBe(sampled.bytes);
  const whole = plan.inputs.reduce((sum, { byteLength }) => sum + byteLength, 0);
  expect(sampled.bytes).toBeLessThan(whole / 10);

  const blocks = (await deltaStatistics(plan, read)).filter(
    ({ layer, shape, contributors }) => layer !== null && shape.length === 2 && contributors.length === 3,
  );
  const sum = (i: number, j: number) => blocks.reduce((all, { products }) => all + products[i]![j]!, 0);
  for (const [i, { distance }] of sampled.contributors.entries()) {
    const exact = Math.sqrt(sum(i + 1, i + 1) / sum(0, 0));
    expect(Math.abs(distance / exact - 1), names[i + 1]).toBeLessThan(0.3);
  }
  for (const { a, b, cosine, overlap, chance } of sampled.pairs) {
    const exact = sum(a + 1, b + 1) / Math.sqrt(sum(a + 1, a + 1) * sum(b + 1, b + 1));
    expect(Math.abs(cosine - exact)).toBeLessThan(0.1);
    expect(overlap).toBeGreaterThan(chance / 2);
    expect(overlap).toBeLessThanOrEqual(1);
  }
  expect(sampledWords(sampled, ['a', 'b', 'c']).replace(/\s/g, ' ')).toMatch(
    /^From the base a moved [\d.]+ %, b moved .*; norms 1 : \d\.\d; signs oppose in .* \(50 % by chance\); subspaces overlap by .*; sampled from 8 tensors, /,
  );
  const still = sampled.contributors.map((one, i) => ({ ...one, distance: i === 0 ? one.distance : 0 }));
  expect(sampledWords({ ...sampled, contributors: still }, ['a', 'b', 'c'])).toMatch(
    /^From the base a moved [\d.]+.%, b moved 0\.0.%, c moved 0\.0.%; sampled from/,
  );
  // nothing is known of two models without a base, or of one
  expect(await sampleChanges({ ...plan, contributors: ['workshop'] }, models)).toBeNull();
  const baseless = plan.tensors.map(({ base: _, ...tensor }) => tensor);
  expect(await sampleChanges({ ...plan, tensors: baseless }, models)).toBeNull();
});

test('the same directions overlap whole, others not at all; opposed changes conflict', () => {
  const cols = 6;
  const rows = (...of: number[][]) => Float32Array.from(of.flat());
  const base = new Float32Array(2 * cols).fill(1);
  const one = rows([1, 0, 0, 0, 0, 0], [0, 2, 0, 0, 0, 0]);
  const turned = rows([0, -3, 0, 0, 0, 0], [-1, 0, 0, 0, 0, 0]);
  const apart = rows([0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 1, 0]);
  const of = (other: Float32Array) => measure([{ base, changes: [one, other], cols }], ['a', 'b']);
  expect(of(turned).pairs[0]).toMatchObject({ cosine: expect.closeTo(0, 12), chance: 1 / 3 });
  expect(of(turned).pairs[0]!.overlap).toBeCloseTo(1, 12);
  expect(of(apart).pairs[0]!.overlap).toBeCloseTo(0, 12);
  const against = of(one.map((x) => -x));
  expect(against.pairs[0]).toMatchObject({ conflict: 1, cosine: expect.closeTo(-1, 12) });
  expect(against.contributors.map(({ distance }) => distance)).toEqual([
    Math.sqrt(5 / 12),
    Math.sqrt(5 / 12),
  ]);
});
