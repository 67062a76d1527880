/** The worker of held-page.ts, and the threads that it starts. */
import { openThread, startThreadsWith } from '../../src/host/threads';
import { exposeThread, fileIn, removeFrom, startThread, storageRoot, syncAccess } from '../../src/platform';
import workerUrl from './held.worker.ts?worker&url';

interface Asked {
  what: 'files' | 'workers';
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

/** Threads that answer after a while; only the waiting promise refers to them. */
async function askWorkers(rounds: number): Promise<number> {
  startThreadsWith(() => startThread(workerUrl, 'nested'));
  const ask = async () => {
    const thread = openThread<{ answer(): Promise<number> }>();
    try {
      return await thread.ask((calls) => calls.answer());
    } finally {
      thread.terminate();
    }
  };
  const litter = setInterval(garbage, 10);
  let answered = 0;
  for (let k = 0; k < rounds; k++) for (const n of await Promise.all([ask(), ask()])) answered += n;
  clearInterval(litter);
  return answered;
}

exposeThread({ answer: () => new Promise<number>((resolve) => setTimeout(() => resolve(1), 1500)) });
self.onmessage = ({ data }: MessageEvent<Asked | null>) => {
  // a thread is asked over its port
  if (data === null) return;
  (data.what === 'files' ? openFiles(data.rounds) : askWorkers(data.rounds)).then(
    (count) => postMessage(count),
    (thrown: unknown) => postMessage(String(thrown)),
  );
};
