import { expect, test, vi } from 'vitest';
import { AmalgamError } from '../../errors';
import type { ModelInfo } from '../../reports/models';
import { takeOverMerge, whyNotYet } from './run';
import { createStudio, type StudioWorker } from './studio';

const run = {
  destination: { kind: 'downloads' as const, name: 'cut-off' },
  recipe: {
    mergeMethod: 'ties',
    baseModel: 'samples/base',
    models: [{ model: 'samples/base+samples/kitchen', parameters: {} }],
    parameters: {},
    amalgam: {},
  },
  engine: 'cpu' as const,
  adapter: '',
  startedAt: '',
  tensorsDone: 9,
  tensors: 56,
  bytesDone: 1,
  bytes: 2,
};
const open = (...refs: string[]) => refs.map((ref) => ({ ref }) as ModelInfo);

test('R47: a merge that was cut off waits for its models while they are opened, and for nothing else', () => {
  const why = (models: ModelInfo[], opening: string[]) => whyNotYet({ models, opening }, run);
  expect(why(open('samples/base'), ['the sample'])).toBe('Opening the sample…');
  expect(why(open('samples/base', 'samples/kitchen'), ['another'])).toBeNull();
  // missing models are named when the merge resumes
  expect(why(open(), [])).toBeNull();
});

test('R39: a merge taken over in a tab that is still opening its models begins when they are open', async () => {
  const plan = vi.fn(() =>
    Promise.reject(new AmalgamError('RecipeInvalid', 'The test ends here.', 'It has seen enough.')),
  );
  const takeOver = vi.fn(async () => undefined);
  const worker = { takeOver, plan, interrupted: async () => [run], cache: async () => ({ outputs: [] }) };
  const studio = createStudio(worker as unknown as StudioWorker);
  studio.store.setState({ opening: ['the sample'], elsewhere: { name: 'cut-off', progress: null } });
  const taking = takeOverMerge(studio);
  await vi.waitFor(() => expect(studio.store.getState().elsewhere).toBeNull());
  studio.store.setState({ models: open('samples/base') });
  await new Promise((resolve) => setTimeout(resolve));
  expect(plan).not.toHaveBeenCalled();
  studio.store.setState({ models: open('samples/base', 'samples/kitchen') });
  await taking;
  expect(plan).toHaveBeenCalledWith(run.recipe);
});

test('R39: a merge of which nothing is left to take over is not given up without a word', async () => {
  const worker = {
    takeOver: async () => undefined,
    interrupted: async () => [],
    cache: async () => ({ outputs: [] }),
  };
  const studio = createStudio(worker as unknown as StudioWorker);
  await takeOverMerge(studio);
  expect(studio.store.getState().notices).toMatchObject([
    { tone: 'note', message: expect.stringMatching(/^Nothing of the other tab/) },
  ]);
});
