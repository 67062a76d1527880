/** An engine behind a port computes what the engine itself does, copies what it is lent and reports failures. */
import { describe, expect, it } from 'vitest';
import type { Kernel } from '../kernel';
import { bytesAfter } from '../kernels/kernels.test.support';
import { addScaled, subtract } from '../kernels/sums';
import { createCpuBackend } from './cpu-backend';
import { localThread } from './local-thread.test.support';
import { createThreadBackend } from './thread-backend';

const open = (...kernels: unknown[]) =>
  createThreadBackend(localThread(new Map((kernels as Kernel[]).map((k) => [k.id, k]))), 'a thread', {
    tileBytes: 2 ** 24,
    keptBytes: 0,
  });

describe('an engine in a thread of its own', () => {
  it('gives the bytes of the engine itself', async () => {
    const contents = () => ({ x: new Float32Array([1, 2, 3]), y: new Float32Array([4, 5, 6, 7]) });
    const params = { elements: 3, scale: 0.5 };
    const far = await bytesAfter(open(addScaled), addScaled as Kernel, contents(), params);
    const near = await bytesAfter(createCpuBackend(), addScaled as Kernel, contents(), params);
    expect([...new Float32Array(far.y!.buffer)]).toEqual([4.5, 6, 7.5, 7]);
    expect(far).toEqual(near);
  });

  it('leaves a lent array as it is and takes one that is handed over', async () => {
    const engine = open();
    const buffer = engine.allocate(16, 'buffer');
    const lent = new Uint8Array([1, 2, 3, 4]);
    const given = new Uint8Array([5, 6, 7, 8]);
    engine.write(buffer, 0, lent);
    lent.fill(0);
    engine.write(buffer, 4, given, true);
    const [bytes] = await engine.read([{ buffer, byteLength: 8 }]);
    expect([...bytes!]).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(lent.length).toBe(4);
    expect(given.length).toBe(0);
  });

  it('answers in the memory it is given', async () => {
    const engine = open();
    const buffer = engine.allocate(8, 'buffer');
    engine.write(buffer, 0, new Uint8Array([1, 2, 3, 4, 5, 6, 7, 8]));
    const into = new Uint8Array(16).fill(9).buffer;
    const [bytes] = await engine.read([{ buffer, byteOffset: 4, byteLength: 4, into }]);
    expect([...bytes!]).toEqual([5, 6, 7, 8]);
    expect(bytes!.buffer.byteLength).toBe(16);
    expect(into.byteLength).toBe(0);
  });

  it('answers reads in order', async () => {
    const engine = open();
    const buffer = engine.allocate(4, 'buffer');
    const reads = [1, 2, 3].map((n) => {
      engine.write(buffer, 0, new Uint8Array([n, 0, 0, 0]));
      return engine.read([{ buffer, byteLength: 1 * 4 }]);
    });
    expect((await Promise.all(reads)).map(([bytes]) => bytes![0])).toEqual([1, 2, 3]);
  });

  it('fails, and stays failed, when its thread cannot do what it is told', async () => {
    const engine = open(addScaled);
    const values = engine.allocate(64, 'values');
    engine.run(subtract, { params: { elements: 8, slot: 8 }, buffers: { values }, groups: 1, elements: 8 });
    await expect(engine.read([])).rejects.toMatchObject({ message: /no kernel subtract/ });
    await expect(engine.read([])).rejects.toMatchObject({ message: /no kernel subtract/ });
  });

  it('ends what waits when it is closed', async () => {
    const engine = open();
    const waiting = engine.read([]);
    engine.close();
    await expect(waiting).rejects.toMatchObject({ code: 'Canceled' });
  });
});
