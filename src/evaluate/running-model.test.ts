import { expect, test } from 'vitest';
import type { OpenModels } from '../host/models';
import type { Plan } from '../merge/plan/plan';
import { plannedConfig } from './running-model';

test('a recipe that writes a LoRA says why it does not run by itself', async () => {
  const plan = (output: 'model' | 'adapter') =>
    ({ recipe: { amalgam: { output } }, contributors: ['kitchen'], extras: [] }) as unknown as Plan;
  const config = (output: 'model' | 'adapter') =>
    plannedConfig(plan(output), {} as OpenModels, new AbortController().signal);
  await expect(config('adapter')).rejects.toThrow('runs on its base only');
  await expect(config('model')).rejects.toThrow('kitchen has no config.json');
});
