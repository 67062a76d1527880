/**
 * One merge at a time over all tabs: its worker holds a Web Lock (which also keeps browsers from freezing a hidden
 * tab) and reports its progress to the others. They may ask it to release the lock.
 */
import { AmalgamError } from '../errors';
import { holdLock, openBroadcast } from '../platform';
import type { Progress } from '../reports/job';
import type { MergeRequest, RunElsewhere } from '../reports/merge';
import { endThreads } from './threads';

const LOCK = 'amalgam-run';
const CHANNEL = 'amalgam-run';
/** How often a tab looks whether the one at work is still there. */
const LOOK_MS = 1000;
/** How long the lock of a page that was left may stay: so long it is not taken for another tab's. */
const DYING_MS = 10_000;
/** How long a tab that was asked to stop may take: its device finishes what it has begun, and what is merged is written. */
const STOP_MS = 60_000;

type Message = { kind: 'progress'; run: RunElsewhere } | { kind: 'ended' } | { kind: 'yield' };

/**
 * Calls `stop` whenever another tab wants to take over. For the window: the worker at work hears of it only when the messages
 * of its threads leave it time, in Chromium sometimes at the end of the merge.
 */
export function onYield(stop: () => void): void {
  openBroadcast<Message>(CHANNEL, ({ kind }) => {
    if (kind === 'yield') stop();
  });
}

/**
 * Runs a merge while no other tab merges, and reports its progress to the others.
 * @param onProgress gets the progress of `act`, in this tab
 * @throws Busy when another tab goes on merging; waits for one that stops
 */
export async function withRunLock<T>(
  { destination }: Pick<MergeRequest, 'destination'>,
  onProgress: (progress: Progress) => void,
  act: (tell: (progress: Progress) => void) => Promise<T>,
): Promise<T> {
  const name = 'name' in destination ? destination.name : destination.kind;
  const letGo = await holdLock(lockOf(workerName));
  if (!letGo) throw busy();
  const release = await takeLock(DYING_MS).catch((thrown: unknown) => {
    letGo();
    throw thrown;
  });
  const { say, close } = openBroadcast<Message>(CHANNEL, () => {});
  try {
    say({ kind: 'progress', run: { name, progress: null } });
    return await act((message) => {
      onProgress(message);
      const { finished: _, ...progress } = message;
      say({ kind: 'progress', run: { name, progress } });
    });
  } finally {
    release();
    letGo();
    say({ kind: 'ended' });
    close();
  }
}

/** The name this worker was started with; the command has none. */
const { name: workerName = '' } = globalThis as { name?: string };
/** The lock by which the page knows that the worker of this name merges, or has not ended yet. */
const lockOf = (worker: string) => `${LOCK} ${worker}`;

/**
 * Waits until the locks of a worker that was ended at its merge are free: Chromium takes seconds, and whoever looked meanwhile
 * would take them for another tab's.
 */
export async function untilEnded(worker: string): Promise<void> {
  // a browser without them: a worker's own stand-ins went with it
  if (navigator.locks === undefined) return;
  (await holdLock(lockOf(worker), STOP_MS))?.();
}

/** Follows the merge of another tab for as long as this worker lives: what it does, and null when there is none. */
export async function followOtherTabs(onRun: (run: RunElsewhere | null) => void): Promise<never> {
  let known: RunElsewhere | null = null;
  const tell = (run: RunElsewhere | null) => {
    known = run;
    onRun(run);
  };
  openBroadcast<Message>(CHANNEL, (message) => {
    // messages of this worker to other tabs come back to it
    if (message.kind === 'progress' && !heldHere) tell(message.run);
    if (message.kind === 'ended' && known !== null) tell(null);
  });
  // a killed tab sends nothing, and its lock goes after seconds; a silent one that still merges holds it
  let heldMs = 0;
  for (;;) {
    const isHeld = await isHeldElsewhere();
    if (isHeld && known === null && heldMs >= DYING_MS) tell({ name: '', progress: null });
    if (!isHeld && (heldMs > 0 || known !== null)) tell(null);
    heldMs = isHeld ? heldMs + LOOK_MS : 0;
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

/** Asks the tab that merges to stop and waits until it has. @throws Busy when it does not */
export async function takeOver(): Promise<void> {
  const { say, close } = openBroadcast<Message>(CHANNEL, () => {});
  say({ kind: 'yield' });
  try {
    (await takeLock(STOP_MS))();
  } finally {
    close();
  }
}

/** Locks this worker holds are not another tab's. */
let heldHere = false;

/** Whether a merge runs in any tab. */
export async function isRunHeld(): Promise<boolean> {
  const { held } = await navigator.locks.query();
  return held?.some(({ name }) => name === LOCK) ?? false;
}

async function isHeldElsewhere(): Promise<boolean> {
  return !heldHere && isRunHeld();
}

async function takeLock(patienceMs: number): Promise<() => void> {
  const release = await holdLock(LOCK, patienceMs);
  if (!release) throw busy();
  heldHere = true;
  return () => {
    heldHere = false;
    release();
  };
}

function busy(): AmalgamError {
  return new AmalgamError(
    'Busy',
    'A merge is running in another tab.',
    'Wait for it, or take it over in this one.',
  );
}

// One job at a time: jobs share the device and the storage.

export function oneJob() {
  /** @throws AmalgamError `Busy` */
  const requireIdle = () => {
    if (current)
      throw new AmalgamError('Busy', 'Another job is still running.', 'Wait for it, or cancel it first.');
  };
  let current: { controller: AbortController; yields: number; ended: Promise<void> } | undefined;
  return {
    /**
     * Runs `work` unless another job is running. A job is stopped as soon as one wants to run that `yields` less.
     * @throws AmalgamError `Busy`, `Canceled`, and what `work` throws
     */
    async run<T>(work: (signal: AbortSignal) => Promise<T>, { yields = 0 } = {}): Promise<T> {
      while (current && current.yields > yields) {
        current.controller.abort();
        await current.ended;
      }
      requireIdle();
      const controller = new AbortController();
      controller.signal.addEventListener('abort', endThreads);
      let end = () => {};
      const ended = new Promise<void>((resolve) => {
        end = resolve;
      });
      current = { controller, yields, ended };
      try {
        return await work(controller.signal);
      } catch (thrown) {
        if (!controller.signal.aborted) throw thrown;
        throw new AmalgamError('Canceled', 'Canceled.', 'Nothing was saved. Start again when you like.', {
          cause: thrown,
        });
      } finally {
        current = undefined;
        end();
      }
    },
    requireIdle,
    /** Stops the running job, if there is one, and its threads at once. */
    cancel(): void {
      current?.controller.abort();
    },
  };
}
