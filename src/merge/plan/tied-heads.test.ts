import { describe, expect, it } from 'vitest';
import { factors, openerOf, recipeOf, tinyAdapter, tinyModel } from '../../inputs/memory-models.test.support';
import type { ModelFolder } from '../../sources/model-folder';
import { methodById } from '../methods';
import type { Plan } from './plan';
import { makePlan } from './recipe-plan';

const planOf = (models: string[], ...folders: ModelFolder[]) =>
  makePlan(recipeOf(models), openerOf(...folders), methodById);
const head = (plan: Plan) => plan.tensors.find((t) => t.name === 'lm_head.weight');
const tie = (plan: Plan) => {
  const { content } = plan.extras.find((e) => e.path === 'config.json')!;
  return JSON.parse((content as { text: string }).text).tie_word_embeddings;
};
const notes = (plan: Plan) => plan.problems.map((p) => [p.severity, p.code]);

describe('R19: heads', () => {
  it('stay tied when all are', async () => {
    const plan = await planOf(['tuned'], tinyModel('base'), tinyModel('tuned'));
    expect(head(plan)).toBeUndefined();
    expect(tie(plan)).toBe(true);
    expect(notes(plan)).toEqual([]);
  });

  it('stay apart when all are', async () => {
    const plan = await planOf(
      ['tuned'],
      tinyModel('base', { head: true }),
      tinyModel('tuned', { head: true }),
    );
    expect(head(plan)!.models[0]!.view.origin).toMatchObject({ folder: 'tuned', key: 'lm_head.weight' });
    expect(tie(plan)).toBe(false);
    expect(notes(plan)).toEqual([]);
  });

  it('are untied by one model that has its own; the embedding stands in for the others', async () => {
    const plan = await planOf(
      ['tuned', 'own'],
      tinyModel('base'),
      tinyModel('tuned'),
      tinyModel('own', { head: true }),
    );
    const planned = head(plan)!;
    expect(planned.base!.origin).toMatchObject({ folder: 'base', key: 'model.embed_tokens.weight' });
    expect(planned.models.map((m) => [m.view.origin.folder, m.view.origin.key])).toEqual([
      ['tuned', 'model.embed_tokens.weight'],
      ['own', 'lm_head.weight'],
    ]);
    expect(tie(plan)).toBe(false);
    expect(notes(plan)).toEqual([['note', 'HeadUntied']]);
  });

  it('of a tied model stand in where the base has its own', async () => {
    const plan = await planOf(['tuned'], tinyModel('base', { head: true }), tinyModel('tuned'));
    expect(head(plan)!.models[0]!.view.origin.key).toBe('model.embed_tokens.weight');
    expect(tie(plan)).toBe(false);
  });

  it('that a tied model stores all the same are left out', async () => {
    const stored = { tensors: { 'lm_head.weight': ['F32', [8, 4]] as ['F32', number[]] } };
    const plan = await planOf(['tuned'], tinyModel('base', stored), tinyModel('tuned'));
    expect(head(plan)).toBeUndefined();
    expect(tie(plan)).toBe(true);
    expect(notes(plan)).toEqual([['note', 'TiedHeadLeftOut']]);
  });

  it('are untied by an adapter that saves a head, and the embedding of the base is where it starts', async () => {
    const adapter = tinyAdapter(
      'lora',
      {
        ...factors('model.layers.0.self_attn.q_proj', 4, 4),
        'base_model.model.lm_head.weight': ['F32', [8, 4]],
      },
      { modules_to_save: ['lm_head'] },
    );
    const plan = await planOf(['base+lora', 'tuned'], tinyModel('base'), adapter, tinyModel('tuned'));
    const planned = head(plan)!;
    expect(planned.base!.origin.key).toBe('model.embed_tokens.weight');
    expect(planned.models[0]!.view).toMatchObject({ onBase: false, origin: { folder: 'lora' } });
    expect(tie(plan)).toBe(false);
  });

  it('are untied by an adapter that updates the head', async () => {
    const plan = await planOf(
      ['base+lora'],
      tinyModel('base'),
      tinyAdapter('lora', factors('lm_head', 4, 8)),
    );
    expect(head(plan)!.models[0]!.view).toMatchObject({
      onBase: true,
      origin: { key: 'model.embed_tokens.weight' },
      lowRank: { layout: 'linear' },
    });
    expect(plan.tensors.find((t) => t.name === 'model.embed_tokens.weight')!.copy).toBeDefined();
  });

  it('are untied by an adapter that updates the embedding, and stay what they were', async () => {
    const module = 'base_model.model.model.embed_tokens';
    const adapter = tinyAdapter('lora', {
      [`${module}.lora_embedding_A`]: ['F32', [2, 8]],
      [`${module}.lora_embedding_B`]: ['F32', [4, 2]],
    });
    const plan = await planOf(['base+lora'], tinyModel('base'), adapter);
    expect(head(plan)!.copy).toMatchObject({ folder: 'base', key: 'model.embed_tokens.weight' });
    expect(tie(plan)).toBe(false);
    const other = await planOf(
      ['base+lora', 'own'],
      tinyModel('base'),
      adapter,
      tinyModel('own', { head: true }),
    );
    expect(head(other)!.models[0]!.view.lowRank).toBeUndefined();
  });

  it('are tied by the default of the family when the config does not say', async () => {
    const silent = (path: string, model_type: string) =>
      tinyModel(path, {
        config: { model_type, tie_word_embeddings: undefined },
        tensors: { 'lm_head.weight': ['F32', [8, 4]] },
      });
    expect(head(await planOf(['m'], silent('base', 'llama'), silent('m', 'llama')))).toBeDefined();
    expect(head(await planOf(['m'], silent('base', 'gemma'), silent('m', 'gemma')))).toBeUndefined();
  });

  it('may be absent altogether', async () => {
    const headless = (path: string) => tinyModel(path, { config: { tie_word_embeddings: false } });
    const plan = await planOf(['m'], headless('base'), headless('m'));
    expect(head(plan)).toBeUndefined();
    expect(tie(plan)).toBe(false);
    expect(notes(plan)).toEqual([]);
  });
});
