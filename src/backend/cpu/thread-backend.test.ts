/** An engine behind a port computes what the engine itself does, copies what it is lent and says what went wrong. */
import { describe, expect, it } from 'vitest';
import type { Kernel } from '../kernel';
import { DTYPE_CODE, decode } from '../kernels/decode';
import { bytesAfter, words } from '../kernels/kernels.test.support';
import { subtract } from '../kernels/subtract';
import { createCpuBackend } from './cpu-backend';
import { localPort } from './local-port.test.support';
import { createThreadBackend } from './thread-backend';

const open = (...kernels: unknown[]) =>
  createThreadBackend(localPort(new Map((kernels as Kernel[]).map((k) => [k.id, k]))), 'a thread', {
    tileBytes: 2 ** 24,
    keptBytes: 0,
  });

describe('an engine in a thread of its own', () => {
  it('gives the bytes of the engine itself', async () => {
    const contents = () => ({
      raw: words(300, 1),
      values: new Uint32Array(400),
      status: new Uint32Array(1),
    });
    const params = { elements: 300, dtype: DTYPE_CODE.BF16, raw_begin: 0, out: 9, status: 0 };
    const far = await bytesAfter(open(decode), decode as Kernel, contents(), params, 1, 300);
    const near = await bytesAfter(createCpuBackend(), decode as Kernel, contents(), params, 1, 300);
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
    const engine = open(decode);
    const values = engine.allocate(64, 'values');
    engine.run(subtract, { params: { elements: 8, slot: 8 }, buffers: { values }, groups: 1, elements: 8 });
    await expect(engine.read([])).rejects.toMatchObject({ message: /no kernel subtract/ });
    await expect(engine.read([])).rejects.toMatchObject({ message: /no kernel subtract/ });
  });

  it('ends what waits when it is closed', async () => {
    const engine = open();
    const waiting = engine.read([]);
    engine.close();
    await expect(waiting).rejects.toMatchObject({ code: 'Cancelled' });
  });
});
