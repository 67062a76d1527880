/** Requests that change something on a hub: JSON to its own origin with the token, and what it refuses in words. */
import * as v from 'valibot';
import { AmalgamError } from '../errors';
import { displayName } from '../formats/names';
import type { RequestSubject } from './http-error';
import { type Hub, hubFailure, hubHeaders } from './hub-request';
import { Retryable, retrying } from './retries';
import { announcedWaitMs, readAll } from './transfer';

interface HubPost {
  /** Path below the hub's root, or a whole URL that the hub named. */
  to: string;
  body: string;
  type?: string;
  /** Statuses that are an answer too, besides success. */
  also?: readonly number[];
  /** Without it the request is made once: whether it arrived cannot be known when the connection is lost. */
  again?: boolean;
}

interface HubReply<T> {
  status: number;
  value: T;
}

/** The hub puts large files together before it answers. */
const ANSWER_MS = 300_000;
const ANSWER_BYTES = 64 * 1024 * 1024;

/**
 * Posts to the hub and reads its JSON answer.
 * @throws Unauthorized for 401 and 403, FileChanged for 409 and 412, HubError for the rest, for an odd answer, and for a
 *   URL on another origin; Offline, RateLimited, Cancelled
 */
export async function hubPost<T>(
  hub: Hub,
  { to, body, type = 'application/json', also = [], again = true }: HubPost,
  schema: v.GenericSchema<unknown, T>,
  subject: RequestSubject,
  signal?: AbortSignal,
): Promise<HubReply<T>> {
  const url = new URL(to, `${hub.url}/`).href;
  if (new URL(url).origin !== new URL(hub.url).origin) throw otherServer(url, subject);
  try {
    return await retrying(
      async (attemptSignal, received) => {
        const request = hub.fetch ?? globalThis.fetch;
        const response = await request(url, {
          method: 'POST',
          headers: { Accept: 'application/json', 'Content-Type': type, ...hubHeaders(hub, url) },
          body,
          signal: attemptSignal,
          cache: 'no-store',
          credentials: 'omit',
          referrerPolicy: 'no-referrer',
        }).catch((cause: unknown) => {
          throw lost(subject, again, cause);
        });
        const { status } = response;
        if (again && (status === 429 || status === 408 || status >= 500)) {
          await response.body?.cancel();
          throw new Retryable(
            status === 429 ? 'rate-limit' : 'server',
            await writeRefusal(hub, response, '', subject),
            status === 429 ? announcedWaitMs(response.headers) : undefined,
          );
        }
        const text = new TextDecoder().decode(await readAll(response, subject, ANSWER_BYTES, received));
        if (!response.ok && !also.includes(status)) throw await writeRefusal(hub, response, text, subject);
        return { status, value: v.parse(schema, text === '' ? {} : JSON.parse(text)) };
      },
      subject,
      { ...hub, stallMs: ANSWER_MS },
      signal,
    );
  } catch (thrown) {
    throw hubFailure(thrown, subject);
  }
}

function lost(subject: RequestSubject, again: boolean, cause: unknown): Error {
  const error = new AmalgamError(
    'Offline',
    `The connection to ${subject.host} was lost while pushing to ${subject.name}.`,
    again
      ? 'Check the connection and push again: files that arrived are not sent twice.'
      : `It is not known whether the commit was made. Look at ${subject.page ?? subject.host}; if the files are not there, push again: they are not sent twice.`,
    { cause },
  );
  return again ? new Retryable('connection', error) : error;
}

/** A refusal to write, in words; the hub's own sentence is quoted, as it says which right is missing. */
async function writeRefusal(
  hub: Hub,
  { status }: Response,
  text: string,
  { host, name }: RequestSubject,
): Promise<AmalgamError> {
  const said = saidBy(text);
  const words = said === '' ? '' : ` It says: “${said}”`;
  if (status === 401) {
    return new AmalgamError(
      'Unauthorized',
      hub.token
        ? `${host} does not accept your access token for ${name}.${words}`
        : `Pushing to ${host} needs an access token.`,
      'Give a token with write permission; this one may be mistyped, expired or revoked.',
    );
  }
  if (status === 403) {
    return new AmalgamError(
      'Unauthorized',
      `Your access token may not write to ${name}.${words}`,
      'Give a token with write permission, and choose an owner that is you or an organization you may write to.',
    );
  }
  if (status === 409 || status === 412) {
    return new AmalgamError(
      'FileChanged',
      `${name} was changed by somebody else in the meantime.${words}`,
      'Look at it again and push once more: files that arrived are not sent twice.',
    );
  }
  if (status === 429) {
    return new AmalgamError(
      'RateLimited',
      `${host} asks for fewer requests.`,
      'Wait some minutes and push again.',
    );
  }
  return new AmalgamError(
    'HubError',
    `${host} refused ${name} with status ${status}.${words}`,
    status >= 500 ? 'The server has a problem. Push again later.' : 'Look at the repository in a browser.',
  );
}

/** What the hub says is wrong, from the `error` of its JSON: one line, cut. */
function saidBy(text: string): string {
  try {
    const { error } = v.parse(v.object({ error: v.string() }), JSON.parse(text));
    return displayName(error.trim(), 300);
  } catch {
    return ''; // a page of a proxy: the status alone has to do
  }
}

function otherServer(url: string, subject: RequestSubject): AmalgamError {
  return new AmalgamError(
    'HubError',
    `${subject.host} points to another server (${new URL(url).origin}) for pushing to ${subject.name}.`,
    'Use another hub.',
  );
}
