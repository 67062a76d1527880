import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import type { FaultRule } from '../../e2e/fake-hub/faults.ts';
import { type FakeHub, READER_TOKEN, STRANGER_TOKEN, startFakeHub } from '../../e2e/fake-hub.ts';
import type { ByteSource } from './byte-source';
import { openHubModel } from './hub';
import type { Hub } from './hub-request';
import type { TransferWait } from './transfer';

const SIZE = 1_000_000;
const weights = Uint8Array.from({ length: SIZE }, (_, i) => (i * 131 + (i >> 8)) & 0xff);
const PATH = 'amalgam/model/data.bin';

let server: FakeHub;
let waits: TransferWait[] = [];

beforeAll(async () => {
  server = await startFakeHub({
    models: [
      { id: 'amalgam/model', files: { 'data.bin': weights, 'config.json': '{"a": 1}' } },
      { id: 'amalgam/gated', files: { 'data.bin': weights }, gated: 'manual' },
    ],
  });
});
afterAll(() => server.close());
afterEach(() => {
  server.faults.length = 0;
  server.requests.length = 0;
  waits = [];
});

/** A hub whose waits take no time and are written down. */
function hub(more: Partial<Hub> = {}): Hub {
  return {
    url: server.url,
    sleep: async (_, signal) => signal?.throwIfAborted(),
    onWait: (wait) => void waits.push(wait),
    ...more,
  };
}

async function open(path = 'data.bin', at: Hub = hub(), id = 'amalgam/model'): Promise<ByteSource> {
  const model = await openHubModel(at, id);
  const file = model.files.find((f) => f.path === path);
  if (!file) throw new Error(`no ${path}`);
  server.requests.length = 0;
  return file.open();
}

const fail = (fault: FaultRule['fault'], times = 1) => server.faults.push({ path: PATH, fault, times });
const byteRequests = () =>
  server.requests.filter((r) => r.range !== undefined && !r.path.includes('/resolve/'));
const ranges = () => byteRequests().map((r) => r.range);

describe('without faults', () => {
  test('reads exactly the range, with one request', async () => {
    const source = await open();
    expect(source.byteLength).toBe(SIZE);
    expect(await source.read(1000, 5000)).toEqual(weights.slice(1000, 5000));
    expect(ranges()).toEqual(['bytes=1000-4999']);
    expect(byteRequests()[0]?.server).toBe('cdn');
  });

  test('an empty range asks for nothing; the last byte and the whole file can be read', async () => {
    const source = await open();
    expect(await source.read(7, 7)).toHaveLength(0);
    expect(server.requests).toHaveLength(0);
    expect(await source.read(SIZE - 1, SIZE)).toEqual(weights.slice(SIZE - 1));
    expect(await source.read(0, SIZE)).toEqual(weights);
  });

  test('a range outside the file is refused before any request', async () => {
    const source = await open();
    for (const [begin, end] of [
      [0, SIZE + 1],
      [-1, 4],
      [5, 4],
      [0.5, 4],
    ] as const) {
      await expect(source.read(begin, end)).rejects.toMatchObject({ code: 'Internal' });
    }
    expect(server.requests).toHaveLength(0);
  });

  test('small files come from the hub itself, not from the download host', async () => {
    const source = await open('config.json');
    expect(new TextDecoder().decode(await source.read(0, source.byteLength))).toBe('{"a": 1}');
    expect(byteRequests().map((r) => r.server)).toEqual(['hub']);
  });
});

describe('R25: cut connections', () => {
  test.each([0, 1, 65_535, 65_536, 99_999])('cut after %i bytes: goes on at the next byte', async (after) => {
    fail({ kind: 'cut', after });
    const source = await open();
    expect(await source.read(50_000, 150_000)).toEqual(weights.slice(50_000, 150_000));
    expect(byteRequests()).toHaveLength(2);
    expect(ranges()[0]).toBe('bytes=50000-149999');
    // Nothing before the cut is asked for again, but for what the break itself swallowed.
    const [, from, end] = /^bytes=(\d+)-(\d+)$/.exec(ranges()[1] ?? '') ?? [];
    expect(Number(from)).toBeGreaterThanOrEqual(after < 65_536 ? 50_000 : 50_001);
    expect(Number(from)).toBeLessThanOrEqual(50_000 + after);
    expect(end).toBe('149999');
    expect(waits).toMatchObject([{ reason: 'connection', name: 'amalgam/model: data.bin' }]);
  });

  test('six cuts without progress are final', async () => {
    fail({ kind: 'cut', after: 10 }, Infinity);
    const source = await open();
    await expect(source.read(0, 1000)).rejects.toMatchObject({ code: 'Offline' });
    expect(byteRequests()).toHaveLength(6);
    expect(waits.map((w) => w.reason)).toEqual(Array(5).fill('connection'));
  });

  test('cuts after real progress never add up', async () => {
    fail({ kind: 'cut', after: 100_000 }, 9);
    const source = await open();
    expect(await source.read(0, SIZE)).toEqual(weights);
    expect(byteRequests()).toHaveLength(10);
  });

  test('a connection that goes silent is given up and tried again', async () => {
    fail({ kind: 'stall', after: 100 });
    const at = hub();
    // the request that goes silent is given up soon, the next one has all the time it needs
    Object.defineProperty(at, 'stallMs', { get: () => (byteRequests().length === 0 ? 400 : 60_000) });
    const source = await open('data.bin', at);
    expect(await source.read(0, 1000)).toEqual(weights.slice(0, 1000));
    expect(byteRequests()).toHaveLength(2);
  });

  test('a drip below 64 KiB in the stall time counts as silent', async () => {
    fail({ kind: 'drip', bytes: 10, everyMs: 10 }, Infinity);
    const source = await open('data.bin', hub({ stallMs: 30 }));
    await expect(source.read(0, 100_000)).rejects.toMatchObject({ code: 'Offline' });
  });

  test('no server at all', async () => {
    const source = await open('data.bin', hub({ fetch: offlineAfter(2) }));
    await expect(source.read(0, 10)).rejects.toMatchObject({
      code: 'Offline',
      message: expect.stringContaining('amalgam/model: data.bin'),
    });
  });
});

describe('R26 R27: answers that are not what was asked', () => {
  test('the whole file for a part, once: asked again', async () => {
    fail({ kind: 'ignore-range' });
    const source = await open();
    expect(await source.read(8, 100)).toEqual(weights.slice(8, 100));
    expect(byteRequests()).toHaveLength(2);
  });

  test('the whole file for a part, always: RangeIgnored, and no slice is taken', async () => {
    fail({ kind: 'ignore-range' }, Infinity);
    const source = await open();
    await expect(source.read(0, 100)).rejects.toMatchObject({ code: 'RangeIgnored' });
    expect(byteRequests()).toHaveLength(4);
  });

  test('200 for a resumed read never lands at the wrong place', async () => {
    fail({ kind: 'cut', after: 70_000 });
    fail({ kind: 'ignore-range' });
    const source = await open();
    expect(await source.read(0, 200_000)).toEqual(weights.slice(0, 200_000));
  });

  test('200 for the whole file is the whole file', async () => {
    fail({ kind: 'ignore-range' });
    const source = await open();
    expect(await source.read(0, SIZE)).toEqual(weights);
    expect(byteRequests()).toHaveLength(1);
  });

  test.each([
    ['another begin', 'bytes 9-99/1000000'],
    ['another end', 'bytes 8-98/1000000'],
    ['another total', 'bytes 8-99/1000001'],
    ['an unknown total', 'bytes 8-99/*'],
    ['another unit', 'items 8-99/1000000'],
    ['an empty value', ''],
    ['no header', null],
  ])('Content-Range with %s: TransferInvalid after 4 tries', async (_, value) => {
    fail({ kind: 'content-range', value }, Infinity);
    const source = await open();
    await expect(source.read(8, 100)).rejects.toMatchObject({ code: 'TransferInvalid' });
    expect(byteRequests()).toHaveLength(4);
    server.faults.length = 0;
    expect(await source.read(8, 100)).toEqual(weights.slice(8, 100));
  });

  test('R33: a config that unpacks to far more than its length is left where it passes it', async () => {
    const bomb = gzipSync(Buffer.alloc(80 * 1024 * 1024, ' '));
    let unpacked = 0;
    const counting = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
      transform(chunk, controller) {
        unpacked += chunk.length;
        controller.enqueue(chunk);
      },
    });
    const answer = () =>
      new Response(
        new Blob([bomb]).stream().pipeThrough(new DecompressionStream('gzip')).pipeThrough(counting),
      );
    let asked = 0;
    const at = hub({
      fetch: async (input, init) =>
        String(input).includes('/resolve/') && asked++ === 0 ? answer() : fetch(input, init),
    });
    const source = await open('config.json', at);
    expect(await source.read(0, source.byteLength)).toEqual(new TextEncoder().encode('{"a": 1}'));
    expect(asked).toBe(2);
    expect(unpacked).toBeLessThan(1024 * 1024);
  });

  test.each([
    { kind: 'short', by: 1 },
    { kind: 'short', by: 92 },
    { kind: 'long', by: 1 },
    { kind: 'long', by: 1_000_000 },
  ] as const)('body $kind by $by: discarded, asked again, then TransferInvalid', async (fault) => {
    const source = await open();
    fail(fault);
    expect(await source.read(8, 100)).toEqual(weights.slice(8, 100));
    fail(fault, Infinity);
    await expect(source.read(8, 100)).rejects.toMatchObject({ code: 'TransferInvalid' });
    expect(byteRequests()).toHaveLength(6);
  });
});

describe('R29 R30: refusals', () => {
  const status = (code: number, headers?: Record<string, string>) =>
    ({ kind: 'status', status: code, ...(headers ? { headers } : {}) }) as const;

  test('429 waits as long as RateLimit announces', async () => {
    fail(status(429, { RateLimit: '"resolvers";r=0;t=55' }));
    const source = await open();
    expect(await source.read(0, 4)).toEqual(weights.slice(0, 4));
    expect(waits).toMatchObject([{ reason: 'rate-limit', seconds: 55, announced: true }]);
  });

  test('429 waits as long as Retry-After says', async () => {
    fail(status(429, { 'Retry-After': '7' }));
    await (await open()).read(0, 4);
    expect(waits.map((w) => w.seconds)).toEqual([7]);
  });

  test('429 without a readable time waits longer than the five minutes of a window, then RateLimited', async () => {
    fail(status(429), Infinity);
    await expect((await open()).read(0, 4)).rejects.toMatchObject({ code: 'RateLimited' });
    expect(waits.map((w) => w.seconds).reduce((a, b) => a + b)).toBeGreaterThan(300);
  });

  test('429 that announces hours is final at once', async () => {
    fail(status(429, { 'Retry-After': '7200' }));
    await expect((await open()).read(0, 4)).rejects.toMatchObject({
      code: 'RateLimited',
      hint: expect.stringMatching(/^Wait 2\sh/),
    });
    expect(waits).toEqual([]);
  });

  test('5xx is tried six times with growing waits, then HubError', async () => {
    fail(status(503), 5);
    const source = await open();
    expect(await source.read(0, 4)).toEqual(weights.slice(0, 4));
    const seconds = waits.map((w) => w.seconds);
    for (const [i, ceiling] of [1, 2, 4, 8, 16].entries()) {
      expect(seconds[i]).toBeGreaterThanOrEqual(ceiling / 2);
      expect(seconds[i]).toBeLessThanOrEqual(ceiling);
    }
    fail(status(500), 6);
    await expect(source.read(0, 4)).rejects.toMatchObject({ code: 'HubError' });
  });

  test('an address of the storage whose signature has expired is asked for again; one refused at a fresh address is said', async () => {
    const cdn = () => server.requests.filter((r) => r.server === 'cdn').length;
    const { origin } = await openHubModel(hub(), 'amalgam/model');
    const path = `/amalgam/model/${origin.commit}/data.bin`;
    server.faults.push({ path, fault: status(403), times: 2 });
    const source = await open();
    expect(await source.read(0, 4)).toEqual(weights.slice(0, 4));
    expect(cdn()).toBe(3);
    server.faults.push({ path, fault: status(403), times: Infinity });
    await expect(source.read(4, 8)).rejects.toMatchObject({
      code: 'HubError',
      message: expect.stringContaining('at a fresh address'),
    });
  });

  test.each([
    [404, 'does not have it'],
    [416, 'refuses it'],
    [451, 'refuses it'],
  ])('what the storage says with %i is not said of the hub', async (code, words) => {
    const { origin } = await openHubModel(hub(), 'amalgam/model');
    server.faults.push({ path: `/amalgam/model/${origin.commit}/data.bin`, fault: status(code) });
    await expect((await open()).read(0, 4)).rejects.toMatchObject({
      code: 'HubError',
      message: expect.stringMatching(new RegExp(`^${new URL(server.cdnUrl).host}, where .* ${words}`)),
    });
  });

  test.each([4, SIZE])('a web page in the place of the first %i bytes is called so', async (end) => {
    const at = hub();
    const source = await open('data.bin', at);
    at.fetch = async () =>
      new Response('<html>', { headers: { 'Content-Type': 'text/html; charset=utf-8' } });
    await expect(source.read(0, end)).rejects.toMatchObject({
      code: 'TransferInvalid',
      message: expect.stringContaining('is a web page'),
    });
  });

  test('other statuses are final at once', async () => {
    fail(status(400));
    await expect((await open()).read(0, 4)).rejects.toMatchObject({ code: 'HubError' });
    expect(waits).toEqual([]);
  });

  test('a gated file names the page where the license is accepted', async () => {
    const anonymous = await open('data.bin', hub(), 'amalgam/gated');
    await expect(anonymous.read(0, 4)).rejects.toMatchObject({
      code: 'Gated',
      hint: expect.stringContaining(`${server.url}/amalgam/gated`),
    });
    const stranger = await open('data.bin', hub({ token: STRANGER_TOKEN }), 'amalgam/gated');
    await expect(stranger.read(0, 4)).rejects.toMatchObject({
      code: 'Gated',
      message: expect.stringContaining('has not been granted access'),
    });
  });

  test('a token given after the model was opened is used, and one that is refused is named', async () => {
    const at = hub();
    const source = await open('data.bin', at, 'amalgam/gated');
    at.token = READER_TOKEN;
    expect(await source.read(0, 4)).toEqual(weights.slice(0, 4));
    at.token = 'hf_expired';
    await expect(source.read(0, 4)).rejects.toMatchObject({
      code: 'Unauthorized',
      message: expect.stringContaining('does not accept your access token'),
    });
  });
});

describe('R32: the token', () => {
  test('goes to the hub and never to the download host', async () => {
    const source = await open('data.bin', hub({ token: READER_TOKEN }));
    await source.read(0, 10);
    const seen = server.requests.map((r) => [r.server, r.authorization]);
    expect(seen).toEqual([
      ['hub', `Bearer ${READER_TOKEN}`],
      ['cdn', undefined],
    ]);
  });
});

describe('canceling', () => {
  test('ends a read in the middle of the body at once', async () => {
    fail({ kind: 'stall', after: 1000 });
    const source = await open();
    const controller = new AbortController();
    const ended = expect(source.read(0, 100_000, controller.signal)).rejects.toMatchObject({
      code: 'Canceled',
    });
    await vi.waitFor(() => expect(byteRequests()).toHaveLength(1), 60_000);
    controller.abort();
    await ended;
    expect(byteRequests()).toHaveLength(1);
  });

  test('ends a wait at once', async () => {
    fail({ kind: 'status', status: 429, headers: { 'Retry-After': '600' } });
    const { sleep: _, ...withRealSleep } = hub();
    const source = await open('data.bin', withRealSleep);
    const controller = new AbortController();
    const ended = expect(source.read(0, 10, controller.signal)).rejects.toMatchObject({ code: 'Canceled' });
    await vi.waitFor(() => expect(waits).toHaveLength(1), 60_000);
    controller.abort();
    await ended;
  });

  test('a signal that has fired asks for nothing', async () => {
    const source = await open();
    await expect(source.read(0, 10, AbortSignal.abort())).rejects.toMatchObject({ code: 'Canceled' });
    expect(server.requests).toHaveLength(0);
  });
});

/** Lets the first `requests` through and then behaves as if there were no network. */
function offlineAfter(requests: number): typeof fetch {
  let made = 0;
  return (input, init) => {
    made++;
    return made <= requests ? fetch(input, init) : Promise.reject(new TypeError('fetch failed'));
  };
}
