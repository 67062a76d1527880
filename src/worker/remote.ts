/**
 * Calls across the boundary of the worker: the window's half is a proxy that has the type of the calls, the worker's half
 * finds them by name. A function among the arguments, always the last, is called back over a channel of its own; a signal in its
 * place ends the call there.
 */
import * as Comlink from 'comlink';
import { type ErrorReport, errorReport, fromErrorReport } from '../errors';
import { openPort } from '../platform';

/** Result of a call on the other side: its value, or the error with its code, which comlink would drop. */
export type Outcome = { value: unknown } | { error: ErrorReport };

/** What the worker exposes; `port` carries what the last argument is called with, `stop` ends the call of that id. */
export interface RemoteWorker {
  call(name: string, args: unknown[], port?: MessagePort, id?: number): Promise<Outcome>;
  stop(id: number): void;
}

type AnyCall = (...args: unknown[]) => Promise<unknown>;

/** The worker's half. */
export function serveCalls(calls: object): RemoteWorker {
  const stops = new Map<number, AbortController>();
  return {
    async call(name, args, port, id) {
      const stop = new AbortController();
      if (id !== undefined) stops.set(id, stop);
      try {
        const run = calls[name as keyof typeof calls] as AnyCall;
        const report = (value: unknown) => port?.postMessage(value);
        return { value: await run(...args, ...(port ? [report] : id === undefined ? [] : [stop.signal])) };
      } catch (thrown) {
        return { error: errorReport(thrown) };
      } finally {
        port?.close();
        if (id !== undefined) stops.delete(id);
      }
    },
    stop: (id) => stops.get(id)?.abort(),
  };
}

/** Whether a call has a progress callback. */
export function reports(args: readonly unknown[]): boolean {
  return typeof args.at(-1) === 'function';
}

/** How many calls with a signal were made: their ids. */
let asked = 0;

/**
 * Makes a call on the other side.
 * @param lost called for progress that cannot be read
 * @returns how it ends, and what lets go of its channel before that
 */
export function callRemote(
  remote: Comlink.Remote<RemoteWorker>,
  name: string,
  args: unknown[],
  lost: (why: string) => void,
): { outcome: Promise<Outcome>; close(): void } {
  const [data, last] = [args.slice(0, -1), args.at(-1)];
  if (last instanceof AbortSignal) {
    const id = ++asked;
    const outcome = remote.call(name, data, undefined, id);
    const stop = () => void remote.stop(id);
    if (last.aborted) stop();
    last.addEventListener('abort', stop);
    const close = () => last.removeEventListener('abort', stop);
    return { outcome: outcome.finally(close), close };
  }
  if (!reports(args)) return { outcome: remote.call(name, args), close() {} };
  const { given, close } = openPort(last as (message: unknown) => void, lost);
  const outcome = remote.call(name, data, Comlink.transfer(given, [given]));
  return { outcome: outcome.finally(close), close };
}

/** The window's half. @param call makes a call, and rejects when the worker is gone */
export function proxyOf<Calls extends object>(
  call: (name: keyof Calls, args: unknown[]) => Promise<Outcome>,
): Calls {
  const answerTo = async (outcome: Promise<Outcome>): Promise<unknown> => {
    const ended = await outcome;
    if ('error' in ended) throw fromErrorReport(ended.error);
    return ended.value;
  };
  return new Proxy({} as Calls, {
    // what is awaited is asked for `then`; the proxy itself is no promise
    get: (_, name) =>
      name === 'then' ? undefined : (...args: unknown[]) => answerTo(call(name as keyof Calls, args)),
  });
}
