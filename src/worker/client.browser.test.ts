import { describe, expect, it, test } from 'vitest';
import { startWorker } from '../platform';
import { connectWorker } from './client';

/** The address of a worker of this code. */
const codeUrl = (code: string) => URL.createObjectURL(new Blob([code], { type: 'text/javascript' }));

/** A worker that holds a lock and never answers. */
async function silentWorker(lock: string): Promise<Worker> {
  const code = `navigator.locks.request('${lock}', () => { postMessage('held'); return new Promise(() => {}); });`;
  const worker = new Worker(codeUrl(code));
  await new Promise((resolve) => worker.addEventListener('message', resolve, { once: true }));
  return worker;
}

const isFree = (lock: string) =>
  navigator.locks.request(lock, { ifAvailable: true }, (granted) => granted !== null);
const leave = () => dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true }));

describe('R39: a page that is left and kept by the browser', () => {
  it('ends its worker in the middle of work, so that another page can have its locks', async () => {
    const worker = await silentWorker('left at work');
    const calls = connectWorker(() => worker);
    const opening = calls.openSample();
    leave();
    await expect(opening).rejects.toMatchObject({ code: 'WorkerDied' });
    await expect.poll(() => isFree('left at work')).toBe(true);
    await expect(calls.openSample()).rejects.toMatchObject({ code: 'WorkerDied' });
  });

  it('keeps a worker that does nothing', async () => {
    const worker = await silentWorker('left idle');
    void connectWorker(() => worker).follow(() => undefined);
    leave();
    // as long as the others' locks took to go
    await expect.poll(() => isFree('left at work')).toBe(true);
    expect(await isFree('left idle')).toBe(false);
    worker.terminate();
  });
});

test('R39: the lock of a merge that was canceled is free before its end is told and another engine looks', async () => {
  const merging = (name: string) =>
    new Worker(
      codeUrl(`
        import { withRunLock } from '${new URL('../host/run-lock.ts', import.meta.url)}';
        withRunLock({ destination: { name: 'busy' } }, () => {}, async () => { postMessage('held'); for (;;); });`),
      { type: 'module', name },
    );
  const looks: Promise<boolean>[] = [];
  let first: Worker | undefined;
  const engine = connectWorker((name) => {
    if (first) looks.push(isFree('amalgam-run'));
    first ??= merging(name);
    return looks.length > 0 ? new Worker(codeUrl('')) : first;
  });
  await new Promise((resolve) => first?.addEventListener('message', resolve, { once: true }));
  const end = engine.merge({ destination: { kind: 'downloads', name: 'busy' } } as never, () => undefined);
  const told = expect(end).rejects.toMatchObject({ code: 'Canceled' });
  await engine.restart('cancel');
  await told;
  expect(await Promise.all(looks)).toEqual([true]);
});

test('R65: where the page has no locks, a merge is canceled and the next engine answers', async () => {
  const engine = connectWorker(() => new Worker(codeUrl('postMessage("up")')));
  const end = engine.merge({ destination: { kind: 'downloads', name: 'busy' } } as never, () => undefined);
  const told = expect(end).rejects.toMatchObject({ code: 'Canceled' });
  Object.defineProperty(navigator, 'locks', { value: undefined, configurable: true });
  try {
    await engine.restart('cancel');
    await told;
  } finally {
    Reflect.deleteProperty(navigator, 'locks');
  }
});

test('the threads that a worker wanted end with it', async () => {
  const thread = (lock: string) =>
    codeUrl(`navigator.locks.request('${lock}', () => new Promise(() => {}));`);
  const wanting = (url: string) => `
    const { port2: calls } = new MessageChannel();
    const { port2: control } = new MessageChannel();
    postMessage({ startThread: { url: '${url}', name: 'wanted' } }, [calls, control]);`;
  const worker = startWorker(codeUrl(wanting(thread('a thread that runs'))), 'owner');
  await expect.poll(() => isFree('a thread that runs')).toBe(false);
  worker.terminate();
  await expect.poll(() => isFree('a thread that runs')).toBe(true);
});

/** Workers that remember what they were asked and, but the first, answer with it; a job reports progress first. */
function startRemembering() {
  const started: Worker[] = [];
  const asked: [worker: number, name: string, args: unknown[]][] = [];
  const start = () => {
    const n = started.length;
    const code = `
      onmessage = ({ data: { id, path, argumentList } }) => {
        const [name, args] = argumentList.map(({ value }) => value);
        postMessage({ asked: [name, args] });
        const value = name === 'interrupted' ? [{ destination: { kind: 'downloads', name: 'left' } }] : { ref: 'a@1', name };
        if (${n} > 0 || name.startsWith('open')) postMessage({ id, type: 'RAW', value: { value } });
      };`;
    const worker = new Worker(codeUrl(code));
    worker.addEventListener('message', ({ data }) => {
      if (data.asked) asked.push([n, ...(data.asked as [string, unknown[]])]);
    });
    started.push(worker);
    return worker;
  };
  return { start, asked };
}

describe('R64: an engine that stands still', () => {
  const request = { destination: { kind: 'downloads', name: 'left' } } as never;

  it('is replaced: the next one opens the same models, pinned, and goes on with what was written', async () => {
    const { start, asked } = startRemembering();
    const engine = connectWorker(start);
    await engine.openHub('a');
    const merging = engine.merge(request, () => undefined);
    const asking = engine.shippedTasks();
    await expect.poll(() => asked.length).toBe(3);
    await engine.restart('again');
    expect(await merging).toMatchObject({ name: 'merge' });
    expect(await asking).toMatchObject({ name: 'shippedTasks' });
    const second = asked.filter(([worker]) => worker === 1);
    expect(second[0]).toEqual([1, 'openHub', ['a@1']]);
    const again = second.find(([, name]) => name === 'merge');
    expect(again?.[2]).toEqual([{ ...(request as object), resume: true }]);
  });

  it('is ended at once where its job is canceled, and what is asked meanwhile waits for the next', async () => {
    const { start, asked } = startRemembering();
    const engine = connectWorker(start);
    const merging = expect(engine.merge(request, () => undefined)).rejects.toMatchObject({
      code: 'Canceled',
    });
    await expect.poll(() => asked.length).toBe(1);
    const restarted = engine.restart('cancel');
    await merging;
    expect(await engine.shippedTasks()).toMatchObject({ name: 'shippedTasks' });
    await restarted;
    expect(asked.filter(([worker, name]) => worker === 1 && name === 'merge')).toEqual([]);
  });
});
