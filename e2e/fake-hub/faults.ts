import type { ServerResponse } from 'node:http';
import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises';

/** One way in which an answer goes wrong. Positions of `cut`, `short`, `long`, `stall` count in the body sent. */
export type Fault =
  /** The connection breaks after this many bytes of the body. */
  | { kind: 'cut'; after: number }
  /** The body stops coming after this many bytes, and the connection stays open. */
  | { kind: 'stall'; after: number }
  /** 200 with the whole file where a part was asked for. */
  | { kind: 'ignore-range' }
  /** Another `Content-Range` than the right one; null leaves it out. */
  | { kind: 'content-range'; value: string | null }
  /** The body is well-formed HTTP but too short or too long by this many bytes. */
  | { kind: 'short'; by: number }
  | { kind: 'long'; by: number }
  /** The byte at this offset of the file arrives with its lowest bit flipped. */
  | { kind: 'flip'; at: number }
  | { kind: 'status'; status: number; headers?: Record<string, string> }
  /** The body comes in small pieces with a pause between them. */
  | { kind: 'drip'; bytes: number; everyMs: number };

export interface FaultRule {
  /** `owner/name/path` for the bytes of a file, or the path of an API request, `/api/models/…`. */
  path: string;
  fault: Fault;
  /** How many requests it strikes. Default 1. */
  times?: number;
  /** How many matching requests pass first. Default 0. */
  skip?: number;
}

/** The fault that strikes a request for `[begin, end)` of `path` now; uses it up. */
export function takeFault(
  rules: FaultRule[],
  path: string,
  at: 'resolver' | 'bytes',
  range: { begin: number; end: number } = { begin: 0, end: 0 },
): Fault | undefined {
  const rule = rules.find(({ path: p, fault, times = 1 }) => {
    if (p !== path || times <= 0 || (fault.kind === 'status') !== (at === 'resolver')) return false;
    return fault.kind !== 'flip' || (range.begin <= fault.at && fault.at < range.end);
  });
  if (!rule) return undefined;
  if ((rule.skip ?? 0) > 0) {
    rule.skip = (rule.skip ?? 0) - 1;
    return undefined;
  }
  rule.times = (rule.times ?? 1) - 1;
  return rule.fault;
}

/** Bytes of a body that are handed to the system at a time. */
const CHUNK = 64 * 1024;

/**
 * Sends `[begin, end)` of the content as the body, with the fault applied.
 * @param onSent called with bytes that the system has taken, and waited for before more are sent; not called for
 *   faults that break the answer off
 */
export async function sendBody(
  response: ServerResponse,
  content: Blob,
  begin: number,
  end: number,
  fault: Fault | undefined,
  onSent: (bytes: number) => Promise<void>,
): Promise<void> {
  let body = Buffer.from(await content.slice(begin, end).arrayBuffer());
  if (fault?.kind === 'flip') body[fault.at - begin] = (body[fault.at - begin] ?? 0) ^ 1;
  if (fault?.kind === 'short') body = body.subarray(0, Math.max(0, body.length - fault.by));
  if (fault?.kind === 'long') body = Buffer.concat([body, Buffer.alloc(fault.by)]);
  // A body of the wrong length goes out in chunks: with a Content-Length it would be a broken connection instead.
  if (fault?.kind !== 'short' && fault?.kind !== 'long') response.setHeader('Content-Length', body.length);

  if (fault?.kind === 'cut') {
    // The pause lets the bytes arrive: a broken stream drops what its reader has not taken yet.
    response.write(body.subarray(0, fault.after));
    await delay(20);
    // a reader in this process gets its turns however late the timer was
    for (let i = 0; i < 50; i++) await turn();
    response.destroy();
  } else if (fault?.kind === 'stall') {
    response.write(body.subarray(0, fault.after));
  } else if (fault?.kind === 'drip') {
    for (let at = 0; at < body.length && !response.destroyed; at += fault.bytes) {
      response.write(body.subarray(at, at + fault.bytes));
      await delay(fault.everyMs);
    }
    response.end();
  } else {
    for (let at = 0; at < body.length && !response.destroyed; at += CHUNK) {
      const chunk = body.subarray(at, at + CHUNK);
      const isTaken = await new Promise<boolean>((resolve) => {
        response.write(chunk, (failed) => resolve(!failed));
      });
      if (!isTaken) return;
      await onSent(chunk.length);
    }
    response.end();
  }
}
