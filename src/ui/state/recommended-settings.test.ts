import { expect, test } from 'vitest';
import { methodById } from '../../merge/methods/index';
import { finetune } from '../worker.test.fixture';
import { buildRecipe } from './built-recipe';
import { mergeWell } from './recipe-state';
import { initialState } from './studio-state';

const model = (ref: string, parameters: number) => finetune(ref, { parameters, dtypes: {} });

const contributor = (ref: string, color: number) => ({
  ref,
  enabled: true,
  color,
  parameters: { weight: 0.4, density: 0.2, ...(color === 1 && { calibration: 'b.txt' }) },
});

const state = {
  ...initialState.recipe,
  base: 'base',
  method: 'ties',
  parameters: { lambda: 0.7, selector: 'importance' },
  contributors: [contributor('a', 0), contributor('b', 1)],
};

test('sets a Gram merge of whole changes on the texts that were chosen, else of the models’ own, with λ searched for', () => {
  const models = [model('base', 1e6), model('a', 1e6), model('b', 1e6)];
  const well = mergeWell(state, models);
  const recipe = buildRecipe(well, models, methodById.get('gram')!);
  expect(recipe.mergeMethod).toBe('gram');
  expect(recipe.parameters).toMatchObject({
    lambda: 'auto',
    calibration_windows: 33,
    calibration_window: 128,
  });
  for (const { parameters } of recipe.models!) expect(parameters.density ?? 1).toBe(1);
  expect(recipe.models!.map(({ parameters }) => parameters.calibration ?? 'self')).toEqual(['self', 'b.txt']);
});

test('gives larger models more to read', () => {
  const windows = (parameters: number) =>
    mergeWell(state, [model('base', parameters)]).parameters.calibration_windows;
  expect([windows(1e7), windows(1e9)]).toEqual([32, 128]);
});

test('leaves how much is read as the person set it, and chooses anew what it chose itself', () => {
  const read = (windows: number, window: number) => {
    const set = { ...state, parameters: { calibration_windows: windows, calibration_window: window } };
    return mergeWell(set, [model('base', 1e9)]).parameters;
  };
  expect(read(8, 32)).toMatchObject({ calibration_windows: 8, calibration_window: 32 });
  expect(read(33, 128)).toMatchObject({ calibration_windows: 128, calibration_window: 256 });
});
