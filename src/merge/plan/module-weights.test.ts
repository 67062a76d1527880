import { describe, expect, test } from 'vitest';
import type { Recipe } from '../../formats/recipe';
import { openerOf, recipeOf, safetensors } from '../../inputs/memory-models.test.support';
import type { ModelFolder } from '../../sources/model-folder';
import { indexedFiles } from '../../write/shard-plan';
import { methodById } from '../methods';
import { makePlan } from './recipe-plan';
import { whole } from './sound-inputs.test.support';

describe('modules behind the body of a sentence encoder', () => {
  const encoder = (path: string, fill: number, file = 'model.safetensors') =>
    whole(path, {
      files: { 'modules.json': '[]', [`2_Dense/${file}`]: safetensors({ w: ['F32', [2]] }, fill) },
    });
  const plan = (recipe: Partial<Recipe>, ...folders: ModelFolder[]) =>
    makePlan({ ...recipeOf(['m']), ...recipe }, openerOf(...folders), methodById);

  test('are merged as other tensors, into a file of their own that no index names', async () => {
    const { tensors, shards, extras, problems } = await plan(
      { amalgam: { shardBytes: 1000 } },
      encoder('base', 0),
      encoder('m', 1),
    );
    expect(problems.filter(({ severity }) => severity === 'error')).toEqual([]);
    expect(tensors.at(-1)).toMatchObject({ name: '2_Dense/w' });
    expect(tensors.at(-1)!.copy).toBeUndefined();
    const { file, header } = shards.at(-1)!;
    expect(file).toBe('2_Dense/model.safetensors');
    expect(Object.keys(JSON.parse(new TextDecoder().decode(header.subarray(8))))).toContain('w');
    expect(shards[0]!.file).toBe(`model-00001-of-${String(shards.length - 1).padStart(5, '0')}.safetensors`);
    expect(indexedFiles(shards)).toHaveLength(shards.length - 1);
    expect(extras.map(({ path }) => path)).not.toContain(file);
    expect(extras.map(({ path }) => path)).toContain('modules.json');
  });

  test('of one model only, as a pickle and in GGUF they are refused by name', async () => {
    const errors = async (recipe: Partial<Recipe>, ...folders: ModelFolder[]) =>
      (await plan(recipe, ...folders)).problems
        .filter(({ severity }) => severity === 'error')
        .map(({ message, tensors = [] }) => `${message} ${tensors.join(' ')}`);
    expect(await errors({}, encoder('base', 0), whole('m'))).toEqual([expect.stringMatching(/2_Dense\/w/)]);
    const pickled = await errors({}, encoder('base', 0, 'pytorch_model.bin'), whole('m'));
    expect(pickled).toEqual([expect.stringMatching(/2_Dense as a pickle only/)]);
    const gguf = await errors({ amalgam: { gguf: 'F16' } }, encoder('base', 0), encoder('m', 1));
    expect(gguf).toEqual([expect.stringMatching(/no place for 2_Dense\//)]);
  });
});
