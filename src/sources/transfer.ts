import { AmalgamError } from '../errors';
import { piecesOf } from '../platform';
import { type RequestSubject, refusal } from './http-error';
import { Retryable, type Transfer } from './retries';

/**
 * Fetches `url` and returns the response when its status is a success. No cookies, no referrer, nothing in the HTTP
 * cache (which would keep a second copy of every weight).
 * @throws Retryable for 408, 425, 429 and 5xx; AmalgamError in words for every other refusal.
 */
export async function fetchOk(
  url: string,
  headers: Record<string, string>,
  subject: RequestSubject,
  transfer: Transfer,
  signal: AbortSignal,
): Promise<Response> {
  const request = transfer.fetch ?? globalThis.fetch;
  const response = await request(url, {
    headers,
    signal,
    cache: 'no-store',
    credentials: 'omit',
    referrerPolicy: 'no-referrer',
  });
  if (response.ok) return response;
  await response.body?.cancel();
  const { status } = response;
  if (status === 429) {
    const final = new AmalgamError(
      'RateLimited',
      `${subject.host} asks for fewer requests and does not yet answer for ${subject.name}.`,
      'Wait some minutes and start again; what was downloaded is kept. An access token raises the limit.',
    );
    throw new Retryable('rate-limit', final, announcedWaitMs(response.headers));
  }
  if (status === 408 || status === 425 || status >= 500) {
    const final = new AmalgamError(
      'HubError',
      `${subject.host} keeps failing with status ${status} for ${subject.name}.`,
      'The server has a problem. Start again later; what was downloaded is kept.',
    );
    throw new Retryable('server', final);
  }
  throw refusal(response, subject, 'Authorization' in headers);
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
    `What ${subject.host} sends for ${subject.name} is larger than ${limit} bytes.`,
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
