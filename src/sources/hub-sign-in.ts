/**
 * Signing in to a hub: OAuth 2.0 authorization code (RFC 6749) with PKCE by S256 (RFC 7636), as the Hub offers it to apps
 * without a secret (huggingface.co/docs/hub/oauth). `@huggingface/hub` would keep the verifier in localStorage and send
 * the new token to whatever address the hub's discovery document names.
 */
import * as v from 'valibot';
import { AmalgamError } from '../errors';
import type { SignInAnswer, SignInRequest } from '../reports/sign-in';
import type { RequestSubject } from './http-error';
import type { Hub } from './hub-request';
import { readAll } from './transfer';

/** A sign-in that waits for its answer. Whoever has the verifier can redeem the code: it never leaves the worker. */
export interface SignIn {
  hubUrl: string;
  clientId: string;
  redirectUrl: string;
  /** The hub's page where the person agrees. */
  url: string;
  state: string;
  verifier: string;
}

/**
 * The least the Hub has: reading what the person may read; to push, creating repositories and writing to those created
 * so, not to the others.
 */
const READING = ['openid', 'profile', 'read-repos', 'gated-repos'];
const PUSHING = [...READING, 'contribute-repos'];
/** Any of these lets a token write somewhere. */
const WRITING: readonly string[] = ['contribute-repos', 'write-repos', 'manage-repos'];

const ANSWER_BYTES = 64 * 1024;
const ANSWER_MS = 30_000;
const grantSchema = v.object({
  access_token: v.pipe(v.string(), v.regex(/^[\x21-\x7e]{1,4096}$/)),
  scope: v.optional(v.string(), ''),
});
const refusalSchema = v.object({ error: v.string() });

/** Prepares a sign-in; nothing is sent yet. */
export async function beginSignIn(
  hub: Hub,
  { clientId, redirectUrl, toPush }: SignInRequest,
): Promise<SignIn> {
  const state = randomText();
  const verifier = randomText();
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier));
  const url = new URL(`${hub.url}/oauth/authorize`);
  url.search = new URLSearchParams({
    client_id: clientId,
    redirect_uri: redirectUrl,
    response_type: 'code',
    scope: (toPush ? PUSHING : READING).join(' '),
    state,
    code_challenge: base64Url(new Uint8Array(digest)),
    code_challenge_method: 'S256',
  }).toString();
  return { hubUrl: hub.url, clientId, redirectUrl, url: url.href, state, verifier };
}

/**
 * Trades the code for a token. Asked once: a code is spent by the first who shows it, whether or not the answer arrives.
 * @returns the token, and whether it may write
 * @throws Unauthorized when the person or the hub declined; Offline, HubError
 */
export async function finishSignIn(
  hub: Hub,
  begun: SignIn | null,
  answer: SignInAnswer,
): Promise<{ token: string; mayWrite: boolean }> {
  const host = new URL(hub.url).host;
  if (begun === null || answer.state !== begun.state || begun.hubUrl !== hub.url) {
    throw declined(`This is not the answer of ${host} to the sign-in that was begun last.`);
  }
  if (answer.code === undefined) {
    throw declined(
      answer.error === 'access_denied'
        ? `You did not agree at ${host}, so you are not signed in.`
        : `${host} did not sign you in.`,
    );
  }
  const subject: RequestSubject = { name: 'the sign-in', host };
  const url = `${hub.url}/oauth/token`;
  let status: number;
  let text: string;
  try {
    const response = await (hub.fetch ?? globalThis.fetch)(url, {
      method: 'POST',
      headers: { Accept: 'application/json', 'Content-Type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({
        grant_type: 'authorization_code',
        client_id: begun.clientId,
        code: answer.code,
        redirect_uri: begun.redirectUrl,
        code_verifier: begun.verifier,
      }).toString(),
      signal: AbortSignal.timeout(ANSWER_MS),
      cache: 'no-store',
      credentials: 'omit',
      referrerPolicy: 'no-referrer',
      // the code and its proof are for this server alone
      redirect: 'error',
    });
    status = response.status;
    text = new TextDecoder().decode(await readAll(response, subject, ANSWER_BYTES, () => undefined));
  } catch (cause) {
    if (cause instanceof AmalgamError) throw cause;
    throw new AmalgamError(
      'Offline',
      `The connection to ${host} was lost while signing in.`,
      'Check the connection and sign in again.',
      { cause },
    );
  }
  const said = parsed(text);
  const grant = v.safeParse(grantSchema, said);
  if (status === 200 && grant.success) {
    const scopes = grant.output.scope.split(' ');
    return { token: grant.output.access_token, mayWrite: scopes.some((s) => WRITING.includes(s)) };
  }
  if (v.is(refusalSchema, said)) throw declined(`${host} did not sign you in: the code was not accepted.`);
  throw new AmalgamError(
    'HubError',
    `${host} gave an answer to the sign-in that Amalgam cannot read (status ${status}).`,
    'Try again later, or paste an access token.',
  );
}

function declined(message: string): AmalgamError {
  return new AmalgamError('Unauthorized', message, 'Sign in again, or paste an access token.');
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // a page of a proxy
  }
}

/** 256 random bits as 43 characters, the fewest that RFC 7636 allows for a verifier. */
function randomText(): string {
  return base64Url(crypto.getRandomValues(new Uint8Array(32)));
}

function base64Url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replace(/\+/g, '-')
    .replace(/\//g, '_')
    .replace(/=+$/, '');
}
