import { describe, expect, test } from 'vitest';
import { matchesTensor } from '../../formats/tensor-pattern';
import { isOff, moduleGroups, otherPatterns, switchModules } from '../recipe/ModuleSection';
import { sampleModels } from '../worker.test.fixture';
import { planFor } from '../worker-plan.test.fixture';
import { buildRecipe } from './built-recipe';
import { sampleRecipe } from './roles';
import { methodOf } from './studio';

const recipe = sampleRecipe(sampleModels);
const { tensors } = planFor(buildRecipe(recipe, sampleModels, methodOf(recipe)), 6, []);
const groups = moduleGroups(tensors);
const group = (id: string) => groups.find((g) => g.id === id)!;
const leftOut = (exclude: readonly string[]) =>
  tensors.filter((t) => exclude.some((pattern) => matchesTensor(pattern, t.name))).map((t) => t.name);

describe('modules of the sample', () => {
  test('every tensor is in one group, and each group is what it is called', () => {
    expect(groups.map((g) => g.label)).toEqual(['Attention', 'MLP', 'Norms', 'Embedding, head']);
    expect(groups.flatMap((g) => g.modules).reduce((sum, m) => sum + m.tensors, 0)).toBe(tensors.length);
    expect(group('attention').modules.map((m) => m.pattern)).toContain('self_attn.q_proj');
    expect(group('norms').modules.map((m) => m.pattern)).toContain('post_attention_layernorm');
  });

  test('a group switched off is one pattern that means its tensors and no others', () => {
    const off = switchModules(recipe, group('mlp'), group('mlp').modules, false);
    expect(off.exclude).toEqual(['mlp.']);
    expect(leftOut(off.exclude)).toEqual(tensors.filter((t) => t.name.includes('.mlp.')).map((t) => t.name));
    expect(switchModules(off, group('mlp'), group('mlp').modules, true).exclude).toEqual([]);
  });

  test('one module of a group that is off comes back alone', () => {
    const mlp = group('mlp');
    const off = switchModules(recipe, mlp, mlp.modules, false);
    const [first] = mlp.modules;
    const back = switchModules(off, mlp, [first!], true);
    expect(mlp.modules.map((m) => isOff(back.exclude, mlp, m))).toEqual([false, true, true]);
    expect(leftOut(back.exclude)).toHaveLength(12);
  });

  test('every pattern of the panel means its own module only', () => {
    for (const { modules } of groups) {
      for (const { pattern, tensors: count } of modules) expect(leftOut([pattern])).toHaveLength(count);
    }
  });

  test('a pattern of other origin is left alone and shown', () => {
    const written = { ...recipe, exclude: ['model.layers.0.*'] };
    const off = switchModules(written, group('norms'), group('norms').modules, false);
    expect(off.exclude[0]).toBe('model.layers.0.*');
    expect(otherPatterns(off.exclude, groups)).toEqual(['model.layers.0.*']);
  });
});
