import { createHash } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { type FakeHub, startFakeHub } from '../../e2e/fake-hub.ts';
import { openHubModel } from '../sources/hub';
import { listBlobs } from './blobs';
import { throughCache } from './cached-source';
import { fakeStorage } from './opfs.test.fake';
import { openPassing } from './passing-source';

const CHUNK = 10_000;
const SIZE = 95_000;
const bytes = Uint8Array.from({ length: SIZE }, (_, i) => (i * 131 + (i >> 8)) & 0xff);
const NAME = 'w.safetensors';
let server: FakeHub;

const signal = new AbortController().signal;

beforeAll(async () => {
  server = await startFakeHub({ models: [{ id: 'a/b', files: { [NAME]: bytes } }] });
});
afterAll(() => server.close());
beforeEach(() => {
  server.faults.length = 0;
  server.requests.length = 0;
  vi.stubGlobal('navigator', fakeStorage().navigator);
});

async function open(held = 4, altered?: string) {
  const folder = await openHubModel({ url: server.url, sleep: async () => {} }, 'a/b');
  const listed = folder.files.find(({ path }) => path === NAME)!;
  const file = throughCache(folder, altered === undefined ? listed : { ...listed, sha256: altered });
  const passing = openPassing(CHUNK, held * CHUNK);
  return { file, passing, source: await passing.open(folder, file, signal) };
}
const ranges = () => server.requests.flatMap(({ server: at, range }) => (at === 'cdn' ? [range] : []));
type Read = Awaited<ReturnType<typeof open>>['source'];
const readAs = async (source: Read, parts: [number, number][]) => {
  for (const [begin, end] of parts)
    expect(Buffer.from(await source.read(begin, end)).equals(bytes.subarray(begin, end))).toBe(true);
};
const steps = (step: number) =>
  Array.from({ length: Math.ceil(SIZE / step) }, (_, i): [number, number] => [
    i * step,
    Math.min(SIZE, (i + 1) * step),
  ]);

test.each([[997], [CHUNK], [33_333], [SIZE]])(
  'read in order by %d bytes every byte comes once, and has the sha256',
  async (step) => {
    const { source, passing } = await open();
    await readAs(source, steps(step));
    await passing.requireSound();
    expect(passing.passed()).toEqual({ bytes: SIZE, again: 0, checked: 1, files: 1 });
    expect(new Set(ranges()).size).toBe(10);
    expect(ranges()).toHaveLength(10);
    expect(await listBlobs()).toEqual([]);
  },
);

test('two readers at once share what comes; a reader that returns later fetches again, and that is counted', async () => {
  const { source, passing } = await open(3);
  await Promise.all([readAs(source, steps(2000)), readAs(source, steps(2000))]);
  expect(passing.passed()).toMatchObject({ bytes: SIZE, again: 0, checked: 1 });
  await readAs(source, [[0, 5000]]);
  expect(passing.passed().again).toBeGreaterThanOrEqual(CHUNK);
});

test('out of order no sha256 is made of it, unless what came early is still held', async () => {
  const near = await open(4);
  await readAs(near.source, [
    [25_000, 45_000],
    [0, 25_000],
    [45_000, SIZE],
  ]);
  await near.passing.requireSound();
  expect(near.passing.passed().checked).toBe(1);
  const far = await open(2);
  await readAs(far.source, [
    [50_000, SIZE],
    [0, 50_000],
  ]);
  await far.passing.requireSound();
  expect(far.passing.passed().checked).toBe(0);
});

test('a file that has another sha256 than the hub lists, and bytes that come as others the second time', async () => {
  const other = createHash('sha256').update('x').digest('hex');
  const { source, passing } = await open(4, other);
  const failed = await readAs(source, steps(7000)).then(
    () =>
      passing.requireSound().then(
        () => null,
        (thrown: unknown) => thrown,
      ),
    (thrown: unknown) => thrown,
  );
  expect(failed).toMatchObject({
    code: 'IntegrityError',
    message: expect.stringContaining('its sha256 is not'),
  });

  const again = await open(2);
  await readAs(again.source, steps(CHUNK));
  server.faults.push({ path: `a/b/${NAME}`, fault: { kind: 'flip', at: 100 } });
  await expect(again.source.read(0, 5000)).rejects.toMatchObject({
    code: 'IntegrityError',
    message: expect.stringContaining('came as others'),
  });
});

test('the part that a plan was made of has to be the same in what passes by', async () => {
  const { file, source } = await open();
  server.faults.push({ path: `a/b/${NAME}`, fault: { kind: 'flip', at: 10 }, times: 1 });
  await file.open().read(0, 100);
  await expect(source.read(0, 5000)).rejects.toMatchObject({
    code: 'IntegrityError',
    message: expect.stringContaining('came altered when it was looked at'),
  });
});

test('a cut connection goes on; a failed chunk is asked for again by the next reader', async () => {
  const { source } = await open();
  server.faults.push({ path: `a/b/${NAME}`, fault: { kind: 'cut', after: 3000 }, times: 2 });
  await readAs(source, [[0, 20_000]]);
  server.faults.push({ path: `a/b/${NAME}`, fault: { kind: 'status', status: 404 }, times: 1 });
  await expect(source.read(50_000, 51_000)).rejects.toMatchObject({ code: 'NotFound' });
  await readAs(source, [[50_000, 51_000]]);
});
