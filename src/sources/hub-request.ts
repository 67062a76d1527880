import { AmalgamError } from '../errors';
import type { RequestSubject } from './http-error';
import { Retryable, retrying, type Transfer } from './retries';
import { fetchOk, readAll } from './transfer';

/** A hub as plain data. The token lives in memory only and is sent to the hub's own origin only. */
export interface Hub extends Transfer {
  /** Root of the hub, without a slash at the end. */
  url: string;
  /** Read again for every request, so that a new token also serves models already open. */
  token?: string;
  /** What signing in allowed the token; of a token that was pasted the hub is asked. */
  mayWrite?: boolean;
}

/** Decoded bytes of one API answer; a page of 1000 files has about 300 kB. */
const ANSWER_BYTES = 64 * 1024 * 1024;

/**
 * `Authorization` for a request to `url`: only when its origin is exactly the hub's. Browsers drop the header again
 * when a download is redirected to another origin.
 */
export function hubHeaders(hub: Hub, url: string): Record<string, string> {
  const own = new URL(url).origin === new URL(hub.url).origin;
  return own && hub.token ? { Authorization: `Bearer ${hub.token}` } : {};
}

/**
 * The `fetch` that `@huggingface/hub` gets: adds the token, retries, turns refusals into words, and reads the whole
 * answer here, so that a cut is retried and a huge one stopped.
 * @throws HubError for a URL on another origin: the library follows the next-page link wherever it points.
 */
export function hubFetch(hub: Hub, subject: RequestSubject, signal?: AbortSignal): typeof globalThis.fetch {
  return async (input) => {
    const url = input instanceof Request ? input.url : String(input);
    if (new URL(url).origin !== new URL(hub.url).origin) {
      throw new AmalgamError(
        'HubError',
        `${subject.host} points to another server (${new URL(url).origin}) for the rest of ${subject.name}.`,
        'Use another hub.',
      );
    }
    return retrying(
      async (attemptSignal, received) => {
        const headers = { Accept: 'application/json', ...hubHeaders(hub, url) };
        const response = await fetchOk(url, headers, subject, hub, attemptSignal).catch((thrown: unknown) => {
          throw isUnreachable(thrown) ? unreachable(subject, thrown) : thrown;
        });
        const body = await readAll(response, subject, ANSWER_BYTES, received);
        return new Response(body, { status: response.status, headers: response.headers });
      },
      subject,
      hub,
      signal,
    );
  };
}

/** What Node says of a connection that never was: nobody knows the name, or nobody answers there. */
const NEVER_CONNECTED = new Set(['ENOTFOUND', 'EAI_AGAIN', 'ECONNREFUSED']);

/** Whether a request got nowhere. Before anything is read that is a matter of the name or the network, not of patience. */
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

/** Any failure of a conversation with the hub as an AmalgamError: the library throws its own on odd answers. */
export function hubFailure(thrown: unknown, subject: RequestSubject): AmalgamError {
  if (thrown instanceof AmalgamError) return thrown;
  if (thrown instanceof Retryable) return thrown.final;
  return new AmalgamError(
    'HubError',
    `${subject.host} gave an answer about ${subject.name} that Amalgam cannot read.`,
    'Check the address of the hub; a network with a sign-in page answers like this too.',
    { cause: thrown },
  );
}
