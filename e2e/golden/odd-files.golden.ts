/** Real files made by others: each opens, or is refused in words that name the file and the reason. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { AmalgamError } from '../../src/errors';
import { parseRecipe } from '../../src/formats/recipe-yaml';
import { describeModel, openModel } from '../../src/inputs/opened-model';
import { methodById } from '../../src/merge/methods';
import { makePlan } from '../../src/merge/plan/recipe-plan';
import type { ModelFolder } from '../../src/sources/model-folder';
import { diskFolder } from '../disk-folder';
import { real, reference } from './reference';

const data = join(reference, 'data');
const open = async (path: string) => openModel(await diskFolder(path, join(data, path)));

async function refusal(path: string): Promise<AmalgamError> {
  try {
    await open(path);
  } catch (thrown) {
    return thrown as AmalgamError;
  }
  throw new Error(`${path} opened`);
}

describe('refused by name', () => {
  it.each([
    ['adapters/bloom560m-bin', 'AdapterUnsupported', /enable_lora|adapter_model\.bin/],
    ['adapters/ia3-opt350m-bin', 'NotSafetensors', /adapter_model\.bin/],
    ['adapters/unilora-refuse', 'AdapterUnsupported', /UNILORA/i],
    ['adapters/opt350m-bin', 'NotSafetensors', /adapter_model\.bin/],
    ['adapters/sd-lora', 'AdapterUnsupported', /lora_disney_inpainting|lora/i],
    ['lfs-pointer', 'LfsPointer', /git-?lfs/i],
  ])('%s', async (path, code, words) => {
    const error = await refusal(path);
    expect(error.code).toBe(code);
    expect(`${error.message} ${error.hint}`).toMatch(words);
    expect(error.message).toContain(path);
    expect(error.hint.length).toBeGreaterThan(20);
  });

  it.each(['llama3-8b-modelstock', 'qwen-72b', 'mixtral-8x22b'])(
    'headers/%s: an index without its shards',
    async (name) => {
      const error = await refusal(`headers/${name}`);
      expect(error.code).toBe('NotFound');
      expect(error.message).toMatch(/weight files that its index names/);
    },
  );
});

describe('opened', () => {
  it('a model that is no language model, with a scalar tensor and no config', async () => {
    const info = describeModel(await open('retsim'));
    expect(info.kind).toBe('checkpoint');
    expect(Object.values(info.dtypes).reduce((a, b) => a + b, 0)).toBe(23);
  });

  it('the official sample of nine dtypes', async () => {
    const info = describeModel(await open('safetensors-samples'));
    expect(Object.keys(info.dtypes).sort()).toEqual([
      'F16',
      'F32',
      'F64',
      'I16',
      'I32',
      'I8',
      'U16',
      'U32',
      'U8',
    ]);
  });

  it('adapters of bases that are not here', async () => {
    const tigrinya = describeModel(await open('adapters/gpt2-tigrinya'));
    expect(tigrinya).toMatchObject({ kind: 'adapter', adapter: { rank: 8 } });
    const roberta = describeModel(await open('adapters/roberta-mrpc'));
    expect(roberta).toMatchObject({ kind: 'adapter', adapter: { rank: 8 } });
  });
});

/** Problems of a recipe over real files. */
async function problems(text: string, roots: Record<string, string>) {
  const { recipe } = parseRecipe(text);
  const folder = (path: string): Promise<ModelFolder> => diskFolder(path, roots[path]!);
  const plan = await makePlan(recipe!, async (path) => openModel(await folder(path), path), methodById);
  return plan.problems.filter((p) => p.severity === 'error');
}

describe('in a plan', () => {
  const base = join(real, 'f32/base');
  const recipe = (model: string) =>
    `merge_method: task_arithmetic\nbase_model: base\nmodels:\n  - model: ${model}\n    parameters: {weight: 1.0}\n`;

  it.each(['gpt2-tigrinya', 'roberta-mrpc'])(
    '%s does not fit a llama: the modules it lacks are named',
    async (name) => {
      const errors = await problems(recipe(`base+${name}`), { base, [name]: join(data, 'adapters', name) });
      expect(errors.length).toBeGreaterThan(0);
      expect(JSON.stringify(errors)).toMatch(/c_attn|query|classifier/);
      for (const error of errors) expect(error.remedy.length).toBeGreaterThan(10);
    },
  );

  it('a model of another architecture does not merge with a llama', async () => {
    const errors = await problems(recipe('retsim'), { base, retsim: join(data, 'retsim') });
    expect(errors.length).toBeGreaterThan(0);
  });

  it('whole-number tensors can be copied but not merged', async () => {
    const roots = { a: join(data, 'safetensors-samples'), b: join(data, 'safetensors-samples') };
    const copied = await problems('merge_method: passthrough\nmodels:\n  - model: a\n', roots);
    expect(copied).toEqual([]);
    const merged = await problems(
      'merge_method: linear\nmodels:\n  - {model: a, parameters: {weight: 1}}\n  - {model: b, parameters: {weight: 1}}\n',
      roots,
    );
    expect(merged.length).toBeGreaterThan(0);
    expect(JSON.stringify(merged)).toMatch(/I8|U16|F64/);
  });

  it('a published recipe parses', () => {
    const text = readFileSync(join(data, 'headers/llama3-8b-modelstock/mergekit_config.yml'), 'utf8');
    expect(parseRecipe(text).problems).toEqual([]);
  });
});
