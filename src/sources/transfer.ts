import { AmalgamError } from '../errors';
import { counted, formatSeconds } from '../formats/quantity';
import { piecesOf } from '../platform';
import { canceled, throwIfCanceled } from './cancellation';
import type { RequestSubject } from './http-error';

/** Longest refusal that is read for its reason. */
const REASON_BYTES = 64 * 1024;

/**
 * Fetches `url` and returns the response when its status is a success. No cookies, no referrer, nothing in the HTTP
 * cache (which would keep a second copy of every weight).
 * @param also statuses that are an answer too
 * @throws Retryable for 408, 425, 429 and 5xx, and where a storage no longer takes the address that the hub gave for it:
 *   asked again, the hub gives a fresh one. AmalgamError in words for every other refusal.
 */
export async function fetchOk(
  url: string,
  init: { headers: Record<string, string>; method?: string; body?: BodyInit },
  subject: RequestSubject,
  transfer: Transfer,
  signal: AbortSignal,
  also: readonly number[] = [],
): Promise<Response> {
  const { name, host, writes } = subject;
  const request = transfer.fetch ?? globalThis.fetch;
  const response = await request(url, {
    ...init,
    signal,
    cache: 'no-store',
    credentials: 'omit',
    referrerPolicy: 'no-referrer',
  });
  const { status } = response;
  if (response.ok || also.includes(status)) return response;
  // the words are many, and most requests need none
  const { quoted, reasonOf, refusal } = await import('./http-error');
  const reason = reasonOf(response, await readReason(response, subject));
  const words = quoted(reason.said);
  const kept = writes
    ? 'Push again later: files that arrived are not sent twice.'
    : 'Start again later; what was downloaded is kept.';
  if (status === 429) {
    const waitMs = announcedWaitMs(response.headers);
    const final = new AmalgamError(
      'RateLimited',
      `${host} asks for fewer requests and does not yet answer for ${name}.${words}`,
      `Wait ${waitMs ? formatSeconds(waitMs / 1000) : 'some minutes'}. ${kept} An access token${tokenPlace(transfer)} raises the limit.`,
    );
    throw new Retryable('rate-limit', final, waitMs);
  }
  if (status === 408 || status === 425 || status >= 500) {
    const message = `${host} keeps failing with status ${status} for ${name}.${words}`;
    throw new Retryable('server', new AmalgamError('HubError', message, `The server has a problem. ${kept}`));
  }
  if (response.redirected && new URL(response.url).origin !== new URL(url).origin) {
    const storage = `${new URL(response.url).host}, where ${host} keeps ${name},`;
    if (EXPIRED.has(status)) {
      const message = `${storage} refuses it with status ${status}, also at a fresh address.${words}`;
      const hint = 'Check the clock of this machine, and whether a network in between refuses that address.';
      throw new Retryable('content', new AmalgamError('HubError', message, hint));
    }
    const isLost = status === 404;
    throw new AmalgamError(
      'HubError',
      `${storage} ${isLost ? 'does not have it' : 'refuses it'} (status ${status}).${words}`,
      `Asking again gives the same answer: ${isLost ? 'use another copy of the model' : `look at ${subject.page ?? host} in a browser`}.`,
    );
  }
  throw refusal(status, reason, subject, 'Authorization' in init.headers, tokenPlace(transfer));
}

/** Statuses by which storages answer to an address with an expired signature. */
const EXPIRED = new Set([400, 401, 403, 410]);

/** The body of a refusal where it is JSON; the rest of it is not fetched. */
async function readReason(response: Response, subject: RequestSubject): Promise<string> {
  if (!response.headers.get('Content-Type')?.includes('json')) {
    await response.body?.cancel();
    return '';
  }
  // a cut or endless body has no reason; the status is known
  const bytes = await readAll(response, subject, REASON_BYTES, () => undefined).catch(
    () => new Uint8Array(0),
  );
  return new TextDecoder().decode(bytes);
}

/** Hands every chunk of the body to `take`, which may throw to stop: that ends the transfer. */
export async function readBody(
  response: Response,
  take: (chunk: Uint8Array<ArrayBuffer>) => void,
): Promise<void> {
  if (!response.body) return;
  for await (const chunk of piecesOf(response.body)) take(chunk);
}

/**
 * The whole body, decoded, in memory.
 * @throws LimitExceeded as soon as it is longer than `limit` bytes, however small it was when compressed.
 */
export async function readAll(
  response: Response,
  subject: RequestSubject,
  limit: number,
  received: (bytes: number) => void,
): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let length = 0;
  await readBody(response, (chunk) => {
    length += chunk.length;
    received(chunk.length);
    if (length > limit) throw tooLarge(subject, limit);
    chunks.push(chunk);
  });
  const whole = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}

function tooLarge(subject: RequestSubject, limit: number): AmalgamError {
  return new AmalgamError(
    'LimitExceeded',
    `What ${subject.host} sends for ${subject.name} is larger than ${counted(limit, 'byte')}.`,
    'Nothing of this size belongs there. Use another copy, or another hub.',
  );
}

/**
 * Milliseconds a 429 asks to wait: `RateLimit: "resolvers";r=0;t=55` (IETF draft-ietf-httpapi-ratelimit-headers-09)
 * or `Retry-After` in seconds or as a date. Undefined when neither can be read, as in a page that the Hub does not
 * expose these headers to.
 */
export function announcedWaitMs(headers: Headers, now = Date.now()): number | undefined {
  const reset = /;\s*t=(\d{1,9})/.exec(headers.get('RateLimit') ?? '')?.[1];
  if (reset !== undefined) return Number(reset) * 1000;
  const after = headers.get('Retry-After');
  if (after === null) return undefined;
  if (/^\d{1,9}$/.test(after)) return Number(after) * 1000;
  const date = Date.parse(after);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

/** Environment of a transfer; tests replace its parts. */
export interface Transfer {
  fetch?: typeof globalThis.fetch;
  /** Resolves after `ms`, rejects with `Canceled` when the signal fires. */
  sleep?: (ms: number, signal?: AbortSignal) => Promise<void>;
  /** Called before each wait, for a countdown on screen; `end` gives it up, and the returned function is called when it is over. */
  onWait?: (wait: TransferWait, end: () => void) => (() => void) | undefined;
  /** Where whoever has an access token gives it, e.g. `HF_TOKEN`; absent where the page asks for it. */
  tokenFrom?: string;
  /** A connection that brings less than 64 KiB in this time is given up and tried again. Default 30 s. */
  stallMs?: number;
}

/** Where an access token is given, after `give an access token`; empty where the page asks for it. */
export function tokenPlace({ tokenFrom }: Pick<Transfer, 'tokenFrom'>): string {
  return tokenFrom === undefined ? '' : ` in ${tokenFrom}`;
}

export interface TransferWait {
  reason: 'rate-limit' | 'server' | 'connection' | 'content';
  seconds: number;
  /** Name of the awaited file or question, e.g. `owner/name: model.safetensors`. */
  name: string;
  /** The server has said how long. */
  announced: boolean;
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
      const { reason, waitMs } = thrown;
      const announced = waitMs !== undefined;
      const own = new AbortController();
      const wait = { reason, seconds: ms / 1000, name: subject.name, announced };
      const over = transfer.onWait?.(wait, () => own.abort());
      try {
        await (transfer.sleep ?? sleep)(ms, signal ? AbortSignal.any([signal, own.signal]) : own.signal);
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
    if (isNeverSent(thrown)) throw neverSent(subject, thrown);
    throw new Retryable('connection', connectionLost(subject, thrown));
  } finally {
    clearInterval(timer);
  }
}

/** Codes of Node for a server whose certificate is not accepted, or that speaks no TLS. */
const UNTRUSTED = /^(?:CERT_|DEPTH_ZERO|EPROTO|ERR_SSL|ERR_TLS|SELF_SIGNED|UNABLE_TO)/;

interface NeverSent {
  cause: { code?: string; message: string };
}

/**
 * Whether Node says that a request cannot be made at all (a port or scheme that `fetch` refuses, redirects without end, a
 * certificate): another try is no cure. Only a cause without a code is its own; browsers give none.
 */
function isNeverSent(thrown: unknown): thrown is NeverSent {
  const cause = thrown instanceof TypeError ? thrown.cause : undefined;
  if (!(cause instanceof Error)) return false;
  const { code } = cause as { code?: string };
  return code === undefined || UNTRUSTED.test(code);
}

function neverSent({ host, name }: RequestSubject, thrown: NeverSent): AmalgamError {
  const { code, message } = thrown.cause;
  // OpenSSL's own text is a line of its source
  const why = message.includes('routines:') ? (code ?? '') : message.trim();
  return new AmalgamError(
    'Offline',
    `${host} cannot be asked for ${name}: ${why}.`,
    code === undefined
      ? 'Check the address of the hub, and where it leads.'
      : 'Check the address of the hub and the clock; where a network has a certificate of its own, NODE_EXTRA_CA_CERTS names its file.',
    { cause: thrown },
  );
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
