/**
 * The Gram merge that matches outputs, against an independent float64 calculation of it on the same calibration ids:
 * merged tensors at λ 1, and perplexities at four λ. `golden/real/sequential`.
 */
import { join } from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { fakeStorage } from '../../src/store/opfs.test.fake';
import { calibrateInNode, type NodeMerge, type NodeModels } from '../calibrate-in-node';
import { readFile, readIds, readText, real } from './reference';

const folder = join(real, 'sequential');
const NAMES = ['shakespeare', 'wiki'] as const;
const TEXTS = { shakespeare: 'shakespeare_heldout', wiki: 'wikitext_test_60k' };
const WINDOWS = { window: 256, stride: 255 };
const VALIDATION = 8500;

interface Expected {
  lambda: Record<string, { validation: number; test: number }>;
}
const expected = JSON.parse(readText(folder, 'expected.json')) as Expected;

const models: NodeModels = {
  root: real,
  folders: { base: 'f32/base', shakespeare: 'f32/shakespeare', wiki: 'f32/wiki' },
  texts: Object.fromEntries(
    NAMES.map((name) => [`${name}.json`, readIds(join(folder, `${name}.self_written.128x256.ids.u16`))]),
  ),
};
const list = NAMES.map((name) => `  - {model: ${name}, parameters: {calibration: ${name}.json}}\n`).join('');
const recipe = `merge_method: gram\nbase_model: base\nmodels:\n${list}parameters: {match: outputs, lambda: 1}\n`;

let merge: NodeMerge;
beforeAll(async () => {
  vi.stubGlobal('navigator', fakeStorage().navigator);
  const begun = performance.now();
  merge = await calibrateInNode(recipe, models);
  console.log(`solved in ${((performance.now() - begun) / 1000).toFixed(1)} s`);
}, 1_200_000);

describe('shakespeare + wiki, matched outputs on 128 × 256 tokens of their own', () => {
  it('every tensor at λ 1 is within 1e-4 of the largest change', async () => {
    const wanted = readFile(folder, 'merged_lambda1.safetensors');
    const base = readFile(real, 'f32/base/model.safetensors');
    let worst = { name: '', share: 0 };
    for (const [name, { values }] of wanted) {
      const ours = await merge.tensor(name);
      const from = base.get(name)!.values;
      let [far, largest] = [0, 0];
      for (const [i, v] of values.entries()) {
        far = Math.max(far, Math.abs(ours[i]! - v));
        largest = Math.max(largest, Math.abs(v - from[i]!));
      }
      console.log(`${name}: ${(far / largest).toExponential(1)}`);
      if (far / largest > worst.share) worst = { name, share: far / largest };
    }
    expect(worst.share, worst.name).toBeLessThan(1e-4);
  });

  it.each(Object.keys(expected.lambda))(
    'perplexities at λ %s are within half a percent',
    async (lambda) => {
      for (const [part, wanted] of Object.entries(expected.lambda[lambda]!)) {
        if (typeof wanted !== 'number') continue;
        let product = 1;
        for (const name of NAMES) {
          const all = readIds(join(real, `eval/${TEXTS[name]}.ids.u16`));
          const ids = part === 'test' ? all.slice(VALIDATION) : all.slice(0, VALIDATION);
          product *= await merge.perplexityAt(Number(lambda), ids, WINDOWS);
        }
        const ours = Math.sqrt(product);
        console.log(`λ ${lambda}, ${part}: ${ours.toFixed(3)}, expected ${wanted.toFixed(3)}`);
        expect(Math.abs(ours / wanted - 1), part).toBeLessThan(0.005);
      }
    },
    600_000,
  );
});
