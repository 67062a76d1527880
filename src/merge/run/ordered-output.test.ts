/** Several engines at once give the bytes and the report of one; what fails fails at its turn, and nothing is left. */
import { describe, expect, it } from 'vitest';
import { createCpuBackend } from '../../backend/cpu/cpu-backend';
import { contractModel, mergeModel, variantsOf } from '../methods/contract.cases';
import { linear } from '../methods/linear';
import { ties } from '../methods/ties';
import type { TensorPlan } from '../plan/plan';
import type { TensorStatistics } from '../tensor/tensor-outcome';
import type { MergeThread } from './merge-thread';
import { openOrderedOutput } from './ordered-output';

const SHAPES = [[300, 64], [3], [65, 64], [0], [4097], [31, 17], [1], [130, 64]];
const threads = (count: number) => Array.from({ length: count }, () => createCpuBackend());

describe('tensors under way at once', () => {
  it.each([2, 3, 8, 16])('%i engines: the bytes and the report of one', async (count) => {
    for (const method of [ties, linear]) {
      const model = contractModel(method, variantsOf(method)[0]!, 'BF16', SHAPES);
      const [engine, ...more] = threads(count);
      const one = await mergeModel(createCpuBackend(), method, model, 4096);
      expect(await mergeModel(engine!, method, model, 4096, 'stop', more)).toEqual(one);
    }
  });

  it('the first tensor in order that fails names the failure', async () => {
    const model = contractModel(ties, variantsOf(ties)[0]!, 'F32', SHAPES);
    for (const index of [2, 4]) {
      const { models } = model.tensors[index]!;
      new Uint32Array(model.bytes.get(models[0]!.view.origin)!.buffer)[0] = 0x7fc00000;
    }
    const [engine, ...more] = threads(4);
    await expect(mergeModel(engine!, ties, model, 4096, 'stop', more)).rejects.toMatchObject({
      code: 'NonFinite',
      message: expect.stringContaining('layers.2'),
    });
  });
});

/** A thread whose tensors are as many bytes as elements, all of them the tensor's number, one byte at a time. */
function countingThread(begun: number[], hold: Promise<void>): MergeThread {
  return {
    run: undefined as never,
    lookAhead() {},
    async merge({ name, elements }, _, emit) {
      begun.push(Number(name));
      if (name === '0') await hold;
      for (let e = 0; e < elements; e++) await emit(new Uint8Array([Number(name)]));
      return { nonFinite: Number(name) } as TensorStatistics;
    },
    close() {},
  };
}

describe('a long tensor before its own', () => {
  const tensors = Array.from({ length: 6 }, (_, i) => ({ name: `${i}`, elements: 3 }) as TensorPlan);

  it.each([
    [0, [0, 1]],
    [3, [0, 1, 3]],
    [9, [0, 1, 3, 4, 5]],
  ])('lets a thread finish others while there is room for %i bytes', async (room, under) => {
    let release = () => {};
    const hold = new Promise<void>((resolve) => {
      release = resolve;
    });
    const begun: number[] = [];
    const thread = countingThread(begun, hold);
    const pending = openOrderedOutput([thread, thread], tensors, 0, undefined, room);
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(begun).toEqual(under);
    release();
    const out: number[] = [];
    for (const { name } of tensors) {
      const { nonFinite } = (await pending.land(async (bytes) => void out.push(...bytes)))!;
      expect(nonFinite).toBe(Number(name));
    }
    expect(out).toEqual(tensors.flatMap(({ name }) => Array(3).fill(Number(name))));
    await pending.cancel();
  });

  it('ends what waits for its turn', async () => {
    const begun: number[] = [];
    const thread = countingThread(begun, Promise.resolve());
    const pending = openOrderedOutput([thread, thread, thread], tensors, 0, undefined, 0);
    await pending.cancel();
    expect(begun).toEqual([0, 1, 2]);
  });
});
