import { expect, test } from 'vitest';
import type { ModelInfo } from '../../reports/models';
import { whyNotYet } from './interrupted-merges';

test('R47: a merge that was cut off waits for its models while they are opened, and for nothing else', () => {
  const run = {
    destination: { kind: 'downloads' as const, name: 'cut-off' },
    recipe: {
      mergeMethod: 'ties',
      baseModel: 'samples/base',
      models: [{ model: 'samples/base+samples/kitchen', parameters: {} }],
      parameters: {},
      amalgam: {},
    },
    ...{
      engine: 'cpu' as const,
      adapter: '',
      startedAt: '',
      tensorsDone: 9,
      tensors: 56,
      bytesDone: 1,
      bytes: 2,
    },
  };
  const open = (...refs: string[]) => refs.map((ref) => ({ ref }) as ModelInfo);
  const why = (models: ModelInfo[], opening: string[]) => whyNotYet({ models, opening }, run);
  expect(why(open('samples/base'), ['the sample'])).toBe('Opening the sample…');
  expect(why(open('samples/base', 'samples/kitchen'), ['another'])).toBeNull();
  // missing models are named when the merge resumes
  expect(why(open(), [])).toBeNull();
});
