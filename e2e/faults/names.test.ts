import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { parseRecipe } from '../../src/formats/recipe-yaml';
import { yamlText } from '../../src/formats/yaml-text';
import names from '../corpus/names.json';

test('R48: thirty names as attacks come back from YAML as they are, as values and as keys', () => {
  expect(names).toHaveLength(30);
  for (const name of names)
    expect(parse(yamlText({ name, list: [name] })), name).toEqual({ name, list: [name] });
});

test.each(names)('R48: a recipe that names %j is read as that name, or refused in words', (name) => {
  const { recipe, problems } = parseRecipe(
    `merge_method: linear\nmodels:\n  - model: ${JSON.stringify(name)}\n    parameters: {weight: 1}\n`,
  );
  if (problems.length > 0) expect(problems.every(({ hint }) => hint !== '')).toBe(true);
  else expect(recipe?.models?.[0]?.model).toBe(name);
});
