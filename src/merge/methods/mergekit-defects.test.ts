/** Cases that mergekit 0.1.4 is known to get wrong, shown to be right here. Breadcrumbs on small tensors: golden.test.ts. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { goldenFolder } from '../../../e2e/goldens';
import { mergeInNode } from '../../../e2e/merge-in-node';
import { parseRecipe } from '../../formats/recipe-yaml';
import { memoryFolder, openerOf } from '../../inputs/memory-models.test.support';
import { makePlan } from '../plan/recipe-plan';
import { methodById } from './index';

const folder = goldenFolder('mergekit');
const file = (name: string) => new Uint8Array(readFileSync(join(folder, name)));
const models = Object.fromEntries(
  ['base', 'a', 'b'].map((name) => [
    name,
    memoryFolder(name, {
      'config.json': file('config.json'),
      'model.safetensors': file(`in_${name}.safetensors`),
      'tokenizer.json': '{"model":{"vocab":{}}}',
    }),
  ]),
);
const merge = (text: string) => mergeInNode(text, folder, models);
const recipe = (method: string, own: string, more = '') => `merge_method: ${method}
base_model: base
models:
  - {model: a, parameters: {weight: 1, ${own}}}
${more}`;

describe('k = 0', () => {
  // mergekit asserts k > 0 and stops: ⌊0.01 · 32⌋ = 0
  it.each(['ties', 'dare_ties'])(
    '%s with density 0.01 keeps something of every tensor, or says how much',
    async (method) => {
      const { reports } = await merge(recipe(method, 'density: 0.01'));
      const small = reports.filter((report) => report.elements < 100);
      expect(small.length).toBeGreaterThan(0);
      for (const { contributors } of small) {
        const { kept } = contributors[0]!;
        if (method === 'ties') expect(kept).toBe(1);
        else expect(kept).toBeLessThan(10);
      }
    },
  );
});

describe('masks', () => {
  // mergekit draws from one stream, tensor after tensor
  it.each(['dare_linear', 'dare_ties', 'della', 'della_linear'])(
    'of %s do not change when another tensor’s density does',
    async (method) => {
      const epsilon = method.startsWith('della') ? ', epsilon: 0.1' : '';
      const all = await merge(recipe(method, `density: 0.5${epsilon}`));
      const one = await merge(
        recipe(method, `density: [{filter: layers.0.mlp, value: 0.8}, {value: 0.5}]${epsilon}`),
      );
      let changed = 0;
      for (const [name, { bytes }] of all.tensors) {
        const same = Buffer.from(bytes).equals(one.tensors.get(name)!.bytes);
        if (name.includes('layers.0.mlp')) changed += same ? 0 : 1;
        else expect(same, name).toBe(true);
      }
      expect(changed).toBe(3);
    },
  );
});

describe('the model that config and tokenizer come from', () => {
  // mergekit takes the first of a set, whose order depends on the hash seed of the process
  it.each([
    ['a', 'b'],
    ['b', 'a'],
  ])('is the first that is listed where there is no base: %s, %s', async (first, second) => {
    const text = `merge_method: linear
models:
  - {model: ${first}, parameters: {weight: 1}}
  - {model: ${second}, parameters: {weight: 1}}
`;
    const plan = await makePlan(parseRecipe(text).recipe!, openerOf(...Object.values(models)), methodById);
    const copied = plan.extras.flatMap(({ content }) => ('folder' in content ? [content.folder] : []));
    expect(new Set(copied)).toEqual(new Set([first]));
  });
});
