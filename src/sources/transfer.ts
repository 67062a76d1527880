import { AmalgamError } from '../errors';
import { counted } from '../formats/quantity';
import { piecesOf } from '../platform';
import { quoted, type RequestSubject, reasonOf, refusal } from './http-error';
import { Retryable, type Transfer } from './retries';

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
  const reason = reasonOf(response, await readReason(response, subject));
  const words = quoted(reason.said);
  const kept = writes
    ? 'Push again later: files that arrived are not sent twice.'
    : 'Start again later; what was downloaded is kept.';
  if (status === 429) {
    const final = new AmalgamError(
      'RateLimited',
      `${host} asks for fewer requests and does not yet answer for ${name}.${words}`,
      `Wait some minutes. ${kept} An access token raises the limit.`,
    );
    throw new Retryable('rate-limit', final, announcedWaitMs(response.headers));
  }
  if (status === 408 || status === 425 || status >= 500) {
    const message = `${host} keeps failing with status ${status} for ${name}.${words}`;
    throw new Retryable('server', new AmalgamError('HubError', message, `The server has a problem. ${kept}`));
  }
  if (response.redirected && new URL(response.url).origin !== new URL(url).origin && EXPIRED.has(status)) {
    const storage = new URL(response.url).host;
    const message = `${storage}, where ${host} keeps ${name}, refuses it with status ${status}, also at a fresh address.${words}`;
    const hint = 'Check the clock of this machine, and whether a network in between refuses that address.';
    throw new Retryable('content', new AmalgamError('HubError', message, hint));
  }
  throw refusal(status, reason, subject, 'Authorization' in init.headers);
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
