/**
 * Signing in to a hub by `@huggingface/hub`: OAuth 2.0 authorization code (RFC 6749) with PKCE by S256 (RFC 7636).
 * Nonce and verifier stay here and not in localStorage, where the library would put them; the token stays in the
 * worker.
 */

import { HubApiError, oauthHandleRedirect, oauthLoginUrl } from '@huggingface/hub';
import * as v from 'valibot';
import { AmalgamError } from '../errors';
import type { SignInAnswer, SignInRequest } from '../reports/push';
import type { RequestSubject } from './http-error';
import { type Hub, hubFailure } from './hub-request';

/** A sign-in that waits for its answer. Whoever has the verifier can redeem the code: it never leaves the worker. */
export interface SignIn {
  hubUrl: string;
  redirectUrl: string;
  /** The hub's page where the user agrees. */
  url: string;
  state: string;
  nonce: string;
  verifier: string;
}

/**
 * The least the Hub has: reading what the user may read; to push, creating repositories and writing to those created
 * so, not to the others.
 */
const READING = ['openid', 'profile', 'read-repos', 'gated-repos'];
const PUSHING = [...READING, 'contribute-repos'];
/** Any of these lets a token write somewhere. */
const WRITING: readonly string[] = ['contribute-repos', 'write-repos', 'manage-repos'];

const ANSWER_MS = 30_000;
const tokenSchema = v.pipe(v.string(), v.regex(/^[\x21-\x7e]{1,4096}$/));

/** Prepares a sign-in: asks the hub for its page. @throws Offline, HubError */
export async function beginSignIn(
  hub: Hub,
  { clientId, redirectUrl, toPush }: SignInRequest,
): Promise<SignIn> {
  const kept: { codeVerifier?: string; nonce?: string } = {};
  const scopes = (toPush ? PUSHING : READING).join(' ');
  const url = await answered(hub, () =>
    oauthLoginUrl({ clientId, redirectUrl, scopes, hubUrl: hub.url, localStorage: kept }),
  );
  // the library takes any answer for a page
  const page = URL.canParse(url) ? new URL(url) : null;
  if (page?.origin !== new URL(hub.url).origin) throw await hubFailure(url, subjectOf(hub));
  const state = page.searchParams.get('state')!;
  return { hubUrl: hub.url, redirectUrl, url, state, nonce: kept.nonce!, verifier: kept.codeVerifier! };
}

/**
 * Trades the code for a token. Asked once: a code is spent by the first who shows it, whether or not the answer arrives.
 * @returns the token, and whether it may write
 * @throws Unauthorized when the user or the hub declined; Offline, HubError
 */
export async function finishSignIn(
  hub: Hub,
  begun: SignIn | null,
  answer: SignInAnswer,
): Promise<{ token: string; mayWrite: boolean }> {
  const { host } = new URL(hub.url);
  if (begun === null || answer.state !== begun.state || begun.hubUrl !== hub.url) {
    throw declined(`This is not the answer of ${host} to the sign-in that was begun last.`);
  }
  const { code, state, error } = answer;
  if (code === undefined) {
    throw declined(
      error === 'access_denied'
        ? `You did not agree at ${host}, so you are not signed in.`
        : `${host} did not sign you in.`,
    );
  }
  const { nonce, verifier, redirectUrl } = begun;
  const { accessToken, scope } = await answered(hub, () =>
    oauthHandleRedirect({
      hubUrl: hub.url,
      redirectedUrl: `${redirectUrl}?${new URLSearchParams({ code, state })}`,
      nonce,
      codeVerifier: verifier,
    }),
  );
  // the library takes any answer for a token
  if (!v.is(tokenSchema, accessToken)) throw await hubFailure(accessToken, subjectOf(hub));
  return { token: accessToken, mayWrite: (scope ?? '').split(' ').some((s) => WRITING.includes(s)) };
}

/** Answer of the library, or its failure in words, within a time limit that the library lacks. */
async function answered<T>(hub: Hub, ask: () => Promise<T>): Promise<T> {
  const { host } = new URL(hub.url);
  const late = AbortSignal.timeout(ANSWER_MS);
  try {
    return await Promise.race([
      ask(),
      new Promise<never>((_, reject) =>
        late.addEventListener('abort', () => reject(new TypeError('no answer')), { once: true }),
      ),
    ]);
  } catch (thrown) {
    if (thrown instanceof HubApiError && thrown.statusCode < 500) {
      throw declined(`${host} did not sign you in: it refused with status ${thrown.statusCode}.`);
    }
    if (!(thrown instanceof TypeError)) throw await hubFailure(thrown, subjectOf(hub));
    throw new AmalgamError(
      'Offline',
      `The connection to ${host} was lost while signing in.`,
      'Check the connection and sign in again, or paste an access token.',
      { cause: thrown },
    );
  }
}

function subjectOf({ url }: Hub): RequestSubject {
  return { name: 'the sign-in', host: new URL(url).host };
}

function declined(message: string): AmalgamError {
  return new AmalgamError('Unauthorized', message, 'Sign in again, or paste an access token.');
}
