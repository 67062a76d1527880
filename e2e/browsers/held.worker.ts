/** The worker of held-page.ts, and the workers in it. */
import { fileIn, removeFrom, startWorker, storageRoot, syncAccess } from '../../src/platform';
import workerUrl from './held.worker.ts?worker&url';

interface Asked {
  what: 'files' | 'workers' | 'answer';
  rounds: number;
}

const garbage = () => {
  for (let i = 0; i < 20; i++) new ArrayBuffer(100_000);
};

/** Two readers open one file again and again. */
async function openFiles(rounds: number): Promise<number> {
  const root = await storageRoot();
  const name = `held-${crypto.randomUUID()}`;
  const first = await syncAccess(await fileIn(root, name, true));
  first.truncate(1 << 20);
  first.close();
  let opened = 0;
  const openAgain = async () => {
    for (let k = 0; k < rounds; k++) {
      const handle = await syncAccess(await fileIn(root, name), 'read-only');
      handle.read(new Uint8Array(256 << 10), { at: 0 });
      handle.close();
      opened++;
      garbage();
    }
  };
  await Promise.all([openAgain(), openAgain()]);
  await removeFrom(root, name);
  return opened;
}

/** Workers that answer after a while; only the waiting promise refers to them. */
async function askWorkers(rounds: number): Promise<number> {
  const ask = () =>
    new Promise<number>((resolve, reject) => {
      const worker = startWorker(workerUrl, 'nested');
      worker.onmessage = ({ data }: MessageEvent<number>) => {
        worker.terminate();
        resolve(data);
      };
      worker.onerror = ({ message }) => reject(new Error(message));
      worker.postMessage({ what: 'answer', rounds: 1 });
    });
  const litter = setInterval(garbage, 10);
  let answered = 0;
  for (let k = 0; k < rounds; k++) for (const n of await Promise.all([ask(), ask()])) answered += n;
  clearInterval(litter);
  return answered;
}

self.onmessage = ({ data: { what, rounds } }: MessageEvent<Asked>) => {
  const answer = new Promise<number>((resolve) => setTimeout(() => resolve(1), 1500));
  const done = what === 'files' ? openFiles(rounds) : what === 'workers' ? askWorkers(rounds) : answer;
  done.then(
    (count) => postMessage(count),
    (thrown: unknown) => postMessage(String(thrown)),
  );
};
