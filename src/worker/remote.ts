/**
 * Calls across the boundary of the worker: the window's half is a proxy that has the type of the calls, the worker's half
 * finds them by name. A function among the arguments, always the last, is called back over a channel of its own.
 */
import * as Comlink from 'comlink';
import { type ErrorReport, errorReport, fromErrorReport } from '../errors';

/** Result of a call on the other side: its value, or the error with its code, which comlink would drop. */
export type Outcome = { value: unknown } | { error: ErrorReport };

/** The one method the worker exposes; `port` carries what the last argument is called with. */
export interface RemoteWorker {
  call(name: string, args: unknown[], port?: MessagePort): Promise<Outcome>;
}

type AnyCall = (...args: unknown[]) => Promise<unknown>;

/** The worker's half. */
export function serveCalls(calls: object): RemoteWorker {
  return {
    async call(name, args, port) {
      try {
        const run = calls[name as keyof typeof calls] as AnyCall;
        const tell = (value: unknown) => port?.postMessage(value);
        return { value: await run(...args, ...(port ? [tell] : [])) };
      } catch (thrown) {
        return { error: errorReport(thrown) };
      } finally {
        port?.close();
      }
    },
  };
}

/**
 * The window's half.
 * @param settle passes on how a call ends, or rejects when the worker is gone; told whether the call reports progress
 */
export function proxyOf<Calls extends object>(
  remote: Comlink.Remote<RemoteWorker>,
  settle: (request: Promise<Outcome>, name: keyof Calls, reports: boolean) => Promise<Outcome>,
): Calls {
  const call = async (name: string, args: unknown[]): Promise<unknown> => {
    const tell = args.at(-1);
    const channel = typeof tell === 'function' ? new MessageChannel() : undefined;
    try {
      if (channel) channel.port1.onmessage = ({ data }: MessageEvent) => (tell as AnyCall)(data);
      const request = channel
        ? remote.call(name, args.slice(0, -1), Comlink.transfer(channel.port2, [channel.port2]))
        : remote.call(name, args);
      const outcome = await settle(request, name as keyof Calls, channel !== undefined);
      if ('error' in outcome) throw fromErrorReport(outcome.error);
      return outcome.value;
    } finally {
      channel?.port1.close();
    }
  };
  return new Proxy({} as Calls, {
    // what is awaited is asked for `then`; the proxy itself is no promise
    get: (_, name) => (name === 'then' ? undefined : (...args: unknown[]) => call(String(name), args)),
  });
}
