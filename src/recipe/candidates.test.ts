import { expect, test } from 'vitest';
import type { Recipe } from '../formats/recipe';
import { candidatesOf } from './candidates';

const recipe: Recipe = {
  mergeMethod: 'ties',
  baseModel: 'base',
  models: ['a', 'b'].map((model) => ({ model, parameters: { weight: 1, density: 0.2 } })),
  parameters: {},
  amalgam: {},
};

test('how much is read is no setting of a recipe that reads nothing', () => {
  const read = { calibration_windows: 33, calibration_window: 128 };
  const given = (own: Recipe['parameters']) =>
    candidatesOf({ ...recipe, parameters: { ...own, ...read } })[0]!.recipe.parameters;
  expect(given({ lambda: 1 })).toEqual({ lambda: 1 });
  expect(given({ lambda: 1, selector: 'importance' })).toEqual({
    lambda: 1,
    selector: 'importance',
    ...read,
  });
});
