/** Uploads through the ring of staging buffers: the same bytes as without it, in the order of all other commands. */
import { afterEach, expect, test, vi } from 'vitest';
import type { Backend } from '../backend';
import { createCpuBackend } from '../cpu/cpu-backend';
import { blockCount } from '../kernel';
import { subtract } from '../kernels/sums';
import { createGpuBackend } from './gpu-backend';

const engines: Backend[] = [];
afterEach(() => {
  vi.restoreAllMocks();
  for (const engine of engines.splice(0)) engine.close();
});

const WORDS = 4 * 2 ** 20;
const SLOT = WORDS / 2;

/** Values that encode where and in which round they were written. */
function piece(round: number, words: number): Uint8Array<ArrayBuffer> {
  const values = new Float32Array(words);
  // a loop: a function for each of millions takes seconds
  for (let i = 0; i < words; i++) values[i] = (i % 1009) * (round + 1);
  return new Uint8Array(values.buffer);
}

/** Writes long and short pieces over one another and subtracts in between, then reads everything. */
async function contents(engine: Backend): Promise<Uint8Array> {
  engines.push(engine);
  const values = engine.allocate(WORDS * 4, 'values');
  const subtracted = () =>
    engine.run(subtract, {
      params: { elements: SLOT, slot: SLOT },
      buffers: { values },
      groups: blockCount(SLOT),
      elements: SLOT,
    });
  engine.write(values, 0, piece(0, WORDS));
  subtracted();
  engine.write(values, 4 * 1000, piece(1, 2 ** 20 + 3));
  subtracted();
  engine.write(values, 4 * (SLOT + 77), piece(2, 5));
  subtracted();
  for (let round = 3; round < 8; round++) {
    // together more than the ring holds
    engine.write(values, 4 * round, piece(round, WORDS - 100));
    subtracted();
  }
  const [bytes] = await engine.read([{ buffer: values, byteLength: WORDS * 4 }]);
  return bytes!;
}

/** Megabytes are compared word by word here: the assertion's own comparison takes a minute. */
function firstDifference(a: Uint8Array, b: Uint8Array): number {
  const [x, y] = [new Uint32Array(a.slice().buffer), new Uint32Array(b.slice().buffer)];
  return x.length === y.length ? x.findIndex((word, i) => word !== y[i]) : 0;
}

test('the bytes are those of the CPU engine, through the ring and past it', async () => {
  const expected = await contents(createCpuBackend());
  expect(firstDifference(await contents(await createGpuBackend(30_000, 'ring')), expected)).toBe(-1);
  expect(firstDifference(await contents(await createGpuBackend()), expected)).toBe(-1);
});

test('staging buffers come back: six rounds of four need no other way', async () => {
  const made = vi.spyOn(GPUDevice.prototype, 'createBuffer');
  const written = vi.spyOn(GPUQueue.prototype, 'writeBuffer');
  const engine = await createGpuBackend(30_000, 'ring');
  engines.push(engine);
  const values = engine.allocate(WORDS * 4, 'values');
  for (let round = 0; round < 6; round++) {
    const data = piece(round, WORDS);
    engine.write(values, 0, data);
    const [bytes] = await engine.read([{ buffer: values, byteLength: WORDS * 4 }]);
    expect(firstDifference(bytes!, data)).toBe(-1);
  }
  expect(made.mock.calls.filter(([{ label }]) => label === 'staging ring').length).toBeLessThanOrEqual(12);
  expect(written.mock.calls.filter(([buffer]) => buffer.label === 'values')).toEqual([]);
});

test('which way is faster is measured once, after much was uploaded, and what is on the device stays', async () => {
  const made = vi.spyOn(GPUDevice.prototype, 'createBuffer');
  const probes = () => made.mock.calls.filter(([{ label }]) => label === 'upload probe').length;
  const engine = await createGpuBackend();
  engines.push(engine);
  const values = engine.allocate(WORDS * 4, 'values');
  for (let round = 0; round < 8; round++) {
    const data = piece(round, WORDS);
    engine.write(values, 0, data);
    expect(probes()).toBe(round < 4 ? 0 : 1);
    const [bytes] = await engine.read([{ buffer: values, byteLength: WORDS * 4 }]);
    expect(firstDifference(bytes!, data)).toBe(-1);
  }
  expect(probes()).toBe(1);
});
