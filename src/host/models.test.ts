import { expect, test, vi } from 'vitest';
import { SAMPLES } from '../../e2e/disk-folder';
import { sampleModels, startFakeHub } from '../../e2e/fake-hub';
import { openCached } from '../store/cached-source';
import { fakeStorage } from '../store/opfs.test.fake';
import { openModels } from './models';

test('a weight file of an open Hub model is downloaded as it streams, with one request for neighboring pieces', async () => {
  vi.stubGlobal('navigator', fakeStorage().navigator);
  const hub = await startFakeHub({ models: sampleModels(SAMPLES) });
  try {
    const models = openModels(() => ({ url: hub.url }));
    const { ref } = await models.addHub('amalgam/base');
    const { folder, file } = models.file(ref, 'model.safetensors');
    hub.requests.length = 0;
    (await openCached(folder, file)).close();
    const ranges = hub.requests.filter((r) => r.server === 'cdn').map((r) => r.range);
    expect(ranges).toEqual([`bytes=0-${file.byteLength - 1}`]);
  } finally {
    await hub.close();
  }
});
