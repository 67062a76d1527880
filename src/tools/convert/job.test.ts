import { expect, test, vi } from 'vitest';
import { openModels } from '../../host/models';
import { safetensors, tinyModel, tinyShapes } from '../../inputs/memory-models.test.support';
import { fakeStorage } from '../../store/opfs.test.fake';
import { jobs } from './job';

test('what is to be known of a model is said with its conversion', async () => {
  vi.stubGlobal('navigator', fakeStorage().navigator);
  const shapes = tinyShapes({ whole: true, hidden: 8 });
  const file = safetensors({ ...shapes, 'lm_head.weight': ['F32', [8, 8]] });
  file[file.length - 1] = 0x3f;
  const models = openModels(() => ({ url: 'https://hub.invalid' }));
  await models.add(tinyModel('m', { whole: true, hidden: 8, files: { 'model.safetensors': file } }));
  const report = await jobs.convert(
    {
      model: 'm',
      form: { dtype: 'bfloat16', gguf: 'none', ggufOnly: false, shardBytes: 1e9 },
      engine: 'cpu',
      destination: { kind: 'nowhere' },
    },
    models,
    new AbortController().signal,
    () => undefined,
  );
  expect(report.notes).toEqual([expect.stringMatching(/^Warning: The config of m ties its head/)]);
  vi.unstubAllGlobals();
});
