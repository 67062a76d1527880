import * as v from 'valibot';
import { AmalgamError } from '../errors';
import { displayName } from '../formats/names';
import type { RequestSubject } from './http-error';
import { fetchOk, Retryable, readAll, retrying, type Transfer } from './transfer';

/** A hub as plain data. The token lives in memory only and is sent to the hub's own origin only. */
export interface Hub extends Transfer {
  /** Root of the hub, without a slash at the end. */
  url: string;
  /** Read again for every request, so that a new token also serves models already open. */
  token?: string;
  /** Write access as signing in granted it; absent for a pasted token, whose access the hub is asked for. */
  mayWrite?: boolean;
}

/** Decoded bytes of one API answer; a page of 1000 files has about 300 kB. */
const ANSWER_BYTES = 64 * 1024 * 1024;

/**
 * `Authorization` for a request to `url`: only when its origin is exactly the hub's. Browsers drop the header again
 * when a download is redirected to another origin.
 * @throws Unauthorized for a token that cannot be sent
 */
export function hubHeaders(hub: Hub, url: string): Record<string, string> {
  const own = new URL(url).origin === new URL(hub.url).origin;
  if (own && hub.token && !/^[!-~]+$/.test(hub.token)) {
    throw new AmalgamError(
      'Unauthorized',
      'The access token has characters that none has.',
      'Copy it again from the settings of your account.',
    );
  }
  return own && hub.token ? { Authorization: `Bearer ${hub.token}` } : {};
}

/** The hub puts large files together before it answers. */
const WRITE_STALL_MS = 300_000;

/**
 * The `fetch` that `@huggingface/hub` gets: adds the token, retries, turns refusals into words, and reads the whole
 * answer here, so that a cut is retried and a huge one stopped. A commit is asked for once: whether it arrived cannot be
 * known when the connection is lost.
 * @param also statuses that the library is given as answers, besides success
 * @throws HubError for a URL on another origin: the library follows the addresses of an answer wherever they point.
 */
export function hubFetch(
  hub: Hub,
  subject: RequestSubject,
  signal?: AbortSignal,
  also: readonly number[] = [],
): typeof globalThis.fetch {
  return async (input, { method = 'GET', body, headers: given } = {}) => {
    const url = input instanceof Request ? input.url : String(input);
    const { origin, pathname } = new URL(url);
    if (origin !== new URL(hub.url).origin) {
      throw new AmalgamError(
        'HubError',
        `${subject.host} points to another server (${origin}) for ${subject.writes ? 'pushing to' : 'the rest of'} ${subject.name}.`,
        'Use another hub.',
      );
    }
    const isCommit = method === 'POST' && /\/commit\/[^/]+$/.test(pathname);
    const type = new Headers(given).get('Content-Type');
    return retrying(
      async (attemptSignal, received) => {
        const headers = {
          Accept: 'application/json',
          ...(type === null ? {} : { 'Content-Type': type }),
          ...hubHeaders(hub, url),
        };
        const request = { method, headers, ...(body ? { body } : {}) };
        const response = await fetchOk(url, request, subject, hub, attemptSignal, also).catch(
          (thrown: unknown) => {
            if (isCommit) throw notKnown(thrown, subject, signal);
            throw isUnreachable(thrown) ? unreachable(subject, thrown) : thrown;
          },
        );
        const whole = await readAll(response, subject, ANSWER_BYTES, received);
        return new Response(whole.length > 0 ? whole : null, {
          status: response.status,
          headers: response.headers,
        });
      },
      subject,
      method === 'GET' ? hub : { ...hub, stallMs: WRITE_STALL_MS },
      signal,
    );
  };
}

/** A failed commit: final where the hub refused it, else of unknown outcome. */
export function notKnown(thrown: unknown, subject: RequestSubject, signal?: AbortSignal): unknown {
  if (signal?.aborted || thrown instanceof AmalgamError) return thrown;
  if (thrown instanceof Retryable && thrown.reason === 'rate-limit') return thrown.final;
  const why = thrown instanceof Retryable ? ` ${thrown.final.message}` : '';
  return new AmalgamError(
    thrown instanceof Retryable ? thrown.final.code : 'Offline',
    `The connection to ${subject.host} failed while pushing to ${subject.name}.${why}`,
    `It is not known whether the commit was made. Look at ${subject.page ?? subject.host}; if the files are not there, push again: they are not sent twice.`,
    { cause: thrown },
  );
}

/** Codes of Node for a connection that was never made: unknown host, or no server at the address. */
const NEVER_CONNECTED = new Set(['ENOTFOUND', 'EAI_AGAIN', 'ECONNREFUSED']);

/** Whether a request never reached a server. Before the first byte that is a matter of name or network, so no retry. */
function isUnreachable(thrown: unknown): boolean {
  const cause = thrown instanceof TypeError ? (thrown.cause as { code?: string } | undefined) : undefined;
  return NEVER_CONNECTED.has(cause?.code ?? '');
}

function unreachable(subject: RequestSubject, cause: unknown): AmalgamError {
  return new AmalgamError(
    'Offline',
    `${subject.host} cannot be reached, so ${subject.name} could not be read.`,
    'Check the connection; of a folder, check the name.',
    { cause },
  );
}

const apiErrorSchema = v.object({ statusCode: v.number(), message: v.string() });

/** Any failure of a conversation with the hub as an AmalgamError: the library throws its own on odd answers. */
export async function hubFailure(thrown: unknown, subject: RequestSubject): Promise<AmalgamError> {
  if (thrown instanceof AmalgamError) return thrown;
  if (thrown instanceof Retryable) return thrown.final;
  // HubApiError of the library, recognized by shape, because the library loads only where it is first needed
  if (v.is(apiErrorSchema, thrown)) {
    const { refusal } = await import('./http-error');
    return refusal(thrown.statusCode, { code: null, said: displayName(thrown.message, 300) }, subject, true);
  }
  return new AmalgamError(
    'HubError',
    `${subject.host} gave an answer about ${subject.name} that Amalgam cannot read.`,
    'Check the address of the hub; a network with a sign-in page answers like this too.',
    { cause: thrown },
  );
}
