import { expect, test } from 'vitest';
import { derivedTensor } from '../inputs/row-map';
import { readF32 } from '../inputs/stored-tensor';
import type { TensorRef } from '../inputs/tensor-view';
import { serveThread } from './serve-thread';
import { openThreads, type PassMember, passBy } from './threads';
import { inputsOf, startThreadsHere } from './threads.test.support';

/** A member that waits `steps(item)` turns for each item, and writes down what it does. */
function memberOf(log: string[], steps: (item: number) => number, fails = -1): PassMember<number> {
  return {
    async take(item, following) {
      log.push(`${item}${following === undefined ? '' : ` before ${following}`}`);
      for (let i = 0; i < steps(item); i++) await undefined;
      if (item === fails) throw new Error(`item ${item}`);
      return item * item;
    },
    close: () => log.push('close'),
  };
}

test('results are in the order of the items; each is taken once', async () => {
  const items = Array.from({ length: 20 }, (_, i) => i);
  for (const count of [1, 2, 3, 7]) {
    const log: string[] = [];
    const told = new Map<number, number>();
    const members = items.slice(0, count).map((w) => memberOf(log, (i) => (i * 7 + w * 3) % 11));
    const pass = passBy(members);
    const results = await pass.run(items.keys(), (result, item) => told.set(item, result));
    expect(results).toEqual(items.map((i) => i * i));
    expect(items.map((i) => told.get(i))).toEqual(results);
    expect(log.map((line) => Number.parseInt(line, 10)).sort((a, b) => a - b)).toEqual(items);
    pass.close();
    expect(log.slice(-count)).toEqual(members.map(() => 'close'));
  }
});

test('a member alone knows which item comes next, several do not', async () => {
  const alone: string[] = [];
  await passBy([memberOf(alone, () => 5)]).run([0, 1, 2]);
  expect(alone).toEqual(['0 before 1', '1 before 2', '2']);
  const two: string[] = [];
  await passBy([memberOf(two, () => 5), memberOf(two, () => 5)]).run([0, 1, 2]);
  expect(two).toEqual(['0', '1', '2']);
});

test('after a failure, or when it is canceled, no more is taken, and the failure comes when all rest', async () => {
  const log: string[] = [];
  const members = [memberOf(log, () => 2, 1), memberOf(log, () => 9, 1)];
  await expect(passBy(members).run(Array(9).keys())).rejects.toThrow('item 1');
  expect(log.length).toBeLessThan(6);
  const canceling = new AbortController();
  const taken: string[] = [];
  const pass = passBy([memberOf(taken, () => 1)], canceling.signal);
  await expect(pass.run(Array(9).keys(), () => canceling.abort())).rejects.toMatchObject({
    code: 'Canceled',
  });
  expect(taken).toHaveLength(1);
});

test('what the owner computes for a thread is opened when it is asked for, and a few of it at a time', async () => {
  const opened: number[] = [];
  const place = { folder: 'm', file: 'f', key: 'k' };
  const refs = Array.from({ length: 40 }, (_, i) =>
    derivedTensor(place, [2], [], async () => {
      opened.push(i);
      return async (begin, end) => Float32Array.of(i, -i).slice(begin, end);
    }),
  );
  startThreadsHere(() =>
    serveThread({
      statistics: (work: { refs: TensorRef[] }, { read }) => ({
        values: async (i: number) => [...(await readF32(work.refs[i]!, read))],
      }),
    }),
  );
  type Calls = { values(i: number): Promise<number[]> };
  const inputs = inputsOf([]);
  const options = { kind: 'statistics', count: 1, work: { refs }, inputs, files: [] } as const;
  const [thread] = await openThreads<Calls>(options);
  expect(opened).toEqual([]);
  for (const i of refs.keys()) {
    expect(await thread!.ask('values', [i])).toEqual([i, -i]);
    expect(opened).toEqual([...refs.keys()].slice(0, i + 1));
  }
  await thread!.ask('values', [39]);
  expect(opened).toHaveLength(40);
  // the first has been let go of
  await thread!.ask('values', [0]);
  expect(opened).toHaveLength(41);
  thread!.terminate();
});
