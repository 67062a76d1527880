import { describe, expect, it } from 'vitest';
import { connectWorker } from './client';

/** A worker that holds a lock and never answers. */
async function silentWorker(lock: string): Promise<Worker> {
  const code = `navigator.locks.request('${lock}', () => { postMessage('held'); return new Promise(() => {}); });`;
  const worker = new Worker(URL.createObjectURL(new Blob([code], { type: 'text/javascript' })));
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
