import { AmalgamError } from '../errors';
import { canceled, throwIfCanceled } from './cancellation';
import type { RequestSubject } from './http-error';

/** Environment of a transfer; tests replace its parts. */
export interface Transfer {
  fetch?: typeof globalThis.fetch;
  /** Resolves after `ms`, rejects with `Canceled` when the signal fires. */
  sleep?: (ms: number, signal?: AbortSignal) => Promise<void>;
  /** Called before each wait, for a countdown on screen; the returned function is called when the wait is over. */
  onWait?: (wait: TransferWait) => (() => void) | undefined;
  /** A connection that brings less than 64 KiB in this time is given up and tried again. Default 30 s. */
  stallMs?: number;
}

export interface TransferWait {
  reason: 'rate-limit' | 'server' | 'connection' | 'content';
  seconds: number;
  /** Name of the awaited file or question, e.g. `owner/name: model.safetensors`. */
  name: string;
}

/** Times one request is made before its failure is final; progress between failures starts the count again. */
const TRIES = { 'rate-limit': 6, server: 6, connection: 6, content: 4 } as const;
const STALL_BYTES = 64 * 1024;
const STALL_MS = 30_000;
/** The Hub counts requests over five minutes, so no honest wait is longer than a few of these. */
const LONGEST_WAIT_MS = 15 * 60_000;

/** A failure that another try may cure. `final` is thrown when the tries are used up. */
export class Retryable extends Error {
  readonly reason: TransferWait['reason'];
  readonly final: AmalgamError;
  readonly waitMs: number | undefined;

  constructor(reason: TransferWait['reason'], final: AmalgamError, waitMs?: number) {
    super(final.message);
    this.reason = reason;
    this.final = final;
    this.waitMs = waitMs;
  }
}

/** One try: `signal` ends it, `received` reports bytes as they arrive so that a stalled connection is noticed. */
type Attempt<T> = (signal: AbortSignal, received: (bytes: number) => void) => Promise<T>;

/**
 * Runs `attempt` until it succeeds, fails for good, or its tries are used up: 6 for lost connections, server errors
 * and rate limits, 4 for answers whose content is wrong. Waits grow from half a second to 30 s with jitter; a rate
 * limit waits as long as the server announces. 64 KiB or more received in a try count as progress.
 * @throws Canceled at once when the signal fires; else the last failure.
 */
export async function retrying<T>(
  attempt: Attempt<T>,
  subject: RequestSubject,
  transfer: Transfer,
  signal?: AbortSignal,
): Promise<T> {
  const failures = new Map<string, number>();
  for (;;) {
    throwIfCanceled(signal);
    let received = 0;
    try {
      return await watched(
        attempt,
        (bytes) => {
          received += bytes;
        },
        subject,
        transfer,
        signal,
      );
    } catch (thrown) {
      if (!(thrown instanceof Retryable)) throw thrown;
      if (thrown.reason === 'connection' && received >= STALL_BYTES) failures.clear();
      const failed = (failures.get(thrown.reason) ?? 0) + 1;
      failures.set(thrown.reason, failed);
      const ms = thrown.waitMs ?? backoffMs(thrown.reason, failed);
      if (failed >= TRIES[thrown.reason] || ms > LONGEST_WAIT_MS) throw thrown.final;
      const over = transfer.onWait?.({ reason: thrown.reason, seconds: ms / 1000, name: subject.name });
      try {
        await (transfer.sleep ?? sleep)(ms, signal);
      } finally {
        over?.();
      }
    }
  }
}

/** Runs one try and ends it when too few bytes arrive; turns a lost connection into a {@link Retryable}. */
async function watched<T>(
  attempt: Attempt<T>,
  received: (bytes: number) => void,
  subject: RequestSubject,
  transfer: Transfer,
  signal: AbortSignal | undefined,
): Promise<T> {
  const stalled = new AbortController();
  let recent = 0;
  const timer = setInterval(() => {
    if (recent < STALL_BYTES) stalled.abort();
    recent = 0;
  }, transfer.stallMs ?? STALL_MS);
  try {
    return await attempt(signal ? AbortSignal.any([signal, stalled.signal]) : stalled.signal, (bytes) => {
      recent += bytes;
      received(bytes);
    });
  } catch (thrown) {
    throwIfCanceled(signal);
    if (thrown instanceof Retryable || thrown instanceof AmalgamError) throw thrown;
    throw new Retryable('connection', connectionLost(subject, thrown));
  } finally {
    clearInterval(timer);
  }
}

/**
 * Wait before try `failed + 1`. Rate limits wait 15, 30, 60, 120, 150 s, which outlasts the Hub's window of five
 * minutes; everything else 0.5, 1, 2, … s up to 30 s, with the upper half random so that tabs do not move in step.
 */
function backoffMs(reason: TransferWait['reason'], failed: number): number {
  if (reason === 'rate-limit') return Math.min(15_000 * 2 ** (failed - 1), 150_000);
  const ceiling = Math.min(1000 * 2 ** (failed - 1), 30_000);
  return ceiling * (0.5 + Math.random() / 2);
}

function connectionLost(subject: RequestSubject, cause: unknown): AmalgamError {
  return new AmalgamError(
    'Offline',
    `The connection to ${subject.host} was lost while ${subject.writes ? 'pushing to' : 'reading'} ${subject.name}.`,
    subject.writes
      ? 'Check the connection and push again: files that arrived are not sent twice.'
      : 'Check the connection and start again; what was downloaded is kept.',
    { cause },
  );
}

function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(canceled());
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, ms);
    signal?.addEventListener('abort', stop, { once: true });
  });
}
