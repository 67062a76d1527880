import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { FaultRule } from '../../e2e/fake-hub/faults.ts';
import { type FakeHub, startFakeHub } from '../../e2e/fake-hub.ts';
import { AmalgamError } from '../errors';
import type { ByteSink } from './byte-source';
import { rangeSource } from './hub-file';

const SIZE = 1_000_000;
const weights = Uint8Array.from({ length: SIZE }, (_, i) => (i * 131 + (i >> 8)) & 0xff);
const PATH = 'amalgam/model/data.bin';

let server: FakeHub;

beforeAll(async () => {
  server = await startFakeHub({ models: [{ id: 'amalgam/model', files: { 'data.bin': weights } }] });
});
afterAll(() => server.close());
afterEach(() => {
  server.faults.length = 0;
  server.requests.length = 0;
});

async function stream(begin: number, end: number, sink: ByteSink): Promise<void> {
  const source = rangeSource(
    {
      url: `${server.url}/amalgam/model/resolve/main/data.bin`,
      byteLength: SIZE,
      subject: { name: 'data.bin', host: 'the hub' },
    },
    { sleep: async () => {} },
  );
  await source.stream?.(begin, end, sink);
}

const fail = (fault: FaultRule['fault'], times = 1) => server.faults.push({ path: PATH, fault, times });
const ranges = () => server.requests.filter((r) => r.server === 'cdn').map((r) => r.range);

/** Keeps whole pieces of 1000 bytes; what is not yet one can be forgotten. */
function pieces(begin: number) {
  let at = begin;
  const taken: Uint8Array[] = [];
  const kept = () => begin + Math.floor((at - begin) / 1000) * 1000;
  return {
    kept,
    wentBack: 0,
    bytes: () => Buffer.concat(taken),
    take(chunk: Uint8Array) {
      taken.push(chunk.slice());
      at += chunk.length;
    },
    goBack() {
      this.wentBack++;
      const whole = Buffer.concat(taken).subarray(0, kept() - begin);
      taken.splice(0, Infinity, whole);
      at = kept();
      return at;
    },
  };
}

test('brings the bytes in order, as they come', async () => {
  fail({ kind: 'drip', bytes: 40_000, everyMs: 5 });
  const sink = pieces(5000);
  let calls = 0;
  const take = sink.take.bind(sink);
  sink.take = (chunk) => {
    calls++;
    take(chunk);
  };
  await stream(5000, 250_000, sink);
  expect(sink.bytes().equals(weights.subarray(5000, 250_000))).toBe(true);
  expect(calls).toBeGreaterThan(1);
  expect(ranges()).toEqual(['bytes=5000-249999']);
});

test.each([0, 1, 65_535, 99_999])('R25: cut after %i bytes: takes no byte twice', async (after) => {
  fail({ kind: 'cut', after });
  const sink = pieces(50_000);
  await stream(50_000, 150_000, sink);
  expect(sink.bytes().equals(weights.subarray(50_000, 150_000))).toBe(true);
  expect(sink.wentBack).toBe(0);
  expect(ranges()).toHaveLength(2);
});

test.each([
  { kind: 'short', by: 1 },
  { kind: 'long', by: 1 },
  { kind: 'long', by: 1_000_000 },
] as const)('R27: body $kind by $by: goes on behind what is kept', async (fault) => {
  fail(fault);
  const sink = pieces(8);
  await stream(8, 200_008, sink);
  expect(sink.bytes().equals(weights.subarray(8, 200_008))).toBe(true);
  expect(sink.wentBack).toBe(1);
  const [, from] = /^bytes=(\d+)-200007$/.exec(ranges()[1] ?? '') ?? [];
  expect((Number(from) - 8) % 1000).toBe(0);
  expect(Number(from)).toBeLessThan(200_008);
});

test('R27: a body that is always too long is never given whole', async () => {
  fail({ kind: 'long', by: 1 }, Infinity);
  const sink = pieces(0);
  await expect(stream(0, 2000, sink)).rejects.toMatchObject({ code: 'TransferInvalid' });
  expect(sink.kept()).toBeLessThan(2000);
  expect(ranges()).toHaveLength(4);
});

test('ends with what its sink throws, at once', async () => {
  const full = new AmalgamError('StorageFull', 'full', 'free some');
  const sink = {
    take: () => {
      throw full;
    },
    goBack: () => 0,
  };
  await expect(stream(0, 200_000, sink)).rejects.toBe(full);
  expect(ranges()).toHaveLength(1);
});
