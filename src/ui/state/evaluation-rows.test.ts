import { expect, test } from 'vitest';
import { sampleModels } from '../worker.test.fixture';
import { type EvaluationRow, evaluationRows, isPinned, targetKey } from './evaluation-rows';
import { setContributorParameter, setParameter } from './recipe-state';
import { sampleRecipe } from './roles';

const recipe = sampleRecipe(sampleModels);

test('only what the same name means on another day is kept: samples and commits, no folder of one’s own', () => {
  const models = sampleModels.map((m) =>
    m.ref === 'samples/harbour' ? { ...m, origin: 'local' as const } : m,
  );
  const now = evaluationRows(recipe, sampleModels).at(-1) as EvaluationRow;
  expect(isPinned({ model: 'samples/base' }, models)).toBe(true);
  expect(isPinned({ model: 'samples/base+samples/kitchen' }, models)).toBe(true);
  expect(isPinned({ model: 'samples/base+samples/harbour' }, models)).toBe(false);
  expect(isPinned({ model: 'unknown' }, models)).toBe(false);
  expect(isPinned(now.target, models)).toBe(false);
  expect(isPinned(now.target, sampleModels)).toBe(true);
  const edited = setContributorParameter(recipe, 'samples/kitchen', 'weight', 0.5);
  expect(targetKey(evaluationRows(edited, sampleModels).at(-1)!.target)).not.toBe(targetKey(now.target));
  expect(evaluationRows(setParameter(edited, 'lambda', 0), sampleModels).at(-1)?.lambda).toBe('0.00');
});
