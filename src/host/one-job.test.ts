import { expect, it } from 'vitest';
import type { WorkerPort } from '../platform';
import { oneJob } from './run-lock';
import { openThread, startThreadsWith } from './threads';

/** Work that ends when told to, or when its signal fires. */
function held() {
  let finish = (_: string) => {};
  const work = (signal: AbortSignal) =>
    new Promise<string>((resolve, reject) => {
      finish = resolve;
      signal.addEventListener('abort', () => reject(new Error('stopped inside')));
    });
  return { work, finish: (value: string) => finish(value) };
}

it('refuses a second job while one runs, and runs the next one after it', async () => {
  const job = oneJob();
  const first = held();
  const running = job.run(first.work);
  await expect(job.run(async () => 'second')).rejects.toMatchObject({ code: 'Busy' });
  first.finish('first');
  expect(await running).toBe('first');
  expect(await job.run(async () => 'third')).toBe('third');
});

it('a job that yields stops for another, which waits for its end', async () => {
  const job = oneJob();
  const order: string[] = [];
  const first = job
    .run(
      async (signal) => {
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        await new Promise((resolve) => setTimeout(resolve, 5));
        order.push('first ended');
        throw new Error('stopped');
      },
      { yields: 1 },
    )
    .catch((error) => error);
  const second = job.run(async () => {
    order.push('second began');
    return 2;
  });
  expect(await second).toBe(2);
  expect(await first).toMatchObject({ code: 'Canceled' });
  expect(order).toEqual(['first ended', 'second began']);
});

it('a job that yields does not push aside one that runs, not even its like', async () => {
  const job = oneJob();
  const first = held();
  const running = job.run(first.work, { yields: 1 });
  await expect(job.run(async () => 1, { yields: 1 })).rejects.toMatchObject({ code: 'Busy' });
  await expect(job.run(async () => 1, { yields: 2 })).rejects.toMatchObject({ code: 'Busy' });
  first.finish('done');
  expect(await running).toBe('done');
});

it('of two that yield the one that yields less goes first', async () => {
  const job = oneJob();
  const { work } = held();
  const first = job.run(
    (signal) => {
      const stopped = new Promise<string>((_, reject) => signal.addEventListener('abort', reject));
      return Promise.race([work(signal), stopped]);
    },
    { yields: 2 },
  );
  const refused = expect(first).rejects.toMatchObject({ code: 'Canceled' });
  expect(await job.run(async () => 'second', { yields: 1 })).toBe('second');
  await refused;
});

it('cancel stops the job with a code, and failures of its own pass through', async () => {
  const job = oneJob();
  const running = job.run(held().work);
  job.cancel();
  await expect(running).rejects.toMatchObject({ code: 'Canceled' });
  await expect(
    job.run(async () => {
      throw new TypeError('own');
    }),
  ).rejects.toThrow(TypeError);
});

it('R64: a canceled job ends its threads at once, in the middle of their work', async () => {
  const thread = createThread();
  startThreadsWith(() => thread.port);
  const job = oneJob();
  const running = job.run(() => {
    const { ask } = openThread<{ work(): Promise<number> }>();
    return ask((calls) => calls.work());
  });
  job.cancel();
  await expect(running).rejects.toMatchObject({ code: 'Canceled' });
  expect(thread.isEnded()).toBe(true);
});

/** A thread that never answers. */
function createThread() {
  let isOver = false;
  const { port1, port2 } = new MessageChannel();
  const port: WorkerPort = {
    endpoint: port1,
    onError() {},
    terminate() {
      isOver = true;
      port1.close();
      port2.close();
    },
  };
  return { port, isEnded: () => isOver };
}
