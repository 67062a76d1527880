/**
 * Signing in to the hub in a window of its own. That window comes back to Amalgam with a code and hands it to this tab
 * (`sign-in-window.ts`); the worker trades it for a token. Nothing of it is stored, and this page never sees the token.
 */

import { AmalgamError } from '../../errors';
import { openBroadcast } from '../../platform';
import type { SignInAnswer } from '../../reports/sign-in';
import { SIGN_IN_CHANNEL, type SignInMessage } from '../sign-in-window';
import { retryRefused } from '../state/named-models';
import { notifyError, type Studio } from '../state/studio';

declare global {
  interface Window {
    /** What a static Space of the Hub tells the page (huggingface.co/docs/hub/spaces-oauth). */
    huggingface?: { variables?: { OAUTH_CLIENT_ID?: string } };
  }
}

/**
 * Whom this page is to the hub, as its host says, else its `<meta name="hub-client-id">`, else the build (docs/hosting.md);
 * without one there is only pasting a token.
 */
export function hubClientId(): string | undefined {
  const told = window.huggingface?.variables?.OAUTH_CLIENT_ID || stoppedVariable('OAUTH_CLIENT_ID');
  const written = document.querySelector<HTMLMetaElement>('meta[name="hub-client-id"]')?.content;
  return told || written || import.meta.env.VITE_HF_CLIENT_ID;
}

/**
 * A variable of a Space whose script our own policy has stopped: what it would have set is in its text, and is read, not run.
 */
function stoppedVariable(name: string): string | undefined {
  const value = new RegExp(`["']?${name}["']?\\s*:\\s*"([\\w-]+)"`);
  const texts = [...document.querySelectorAll('script:not([src])')].map(
    ({ textContent }) => textContent ?? '',
  );
  return texts.find((text) => text.includes('huggingface'))?.match(value)?.[1];
}

/**
 * Opens the hub's page and waits until the person has agreed there. Call it from a click: browsers open windows for
 * nothing else. Never rejects; what goes wrong is said on the page.
 */
export async function signIn(studio: Studio, clientId: string, toPush: boolean): Promise<void> {
  neverMind(studio);
  const opened = window.open('', '_blank', 'popup,width=560,height=760');
  const stop = new AbortController();
  studio.transient.signIn = stop;
  try {
    if (!opened) {
      throw new AmalgamError(
        'NotFound',
        'The browser did not open the window to sign in.',
        'Allow this page to open windows, or paste an access token.',
      );
    }
    // the hub's page gets no handle on this one
    opened.opener = null;
    editSignIn(studio, { signingIn: true });
    const redirectUrl = new URL('.', location.href).href.replace(/[?#].*$/, '');
    const page = await studio.worker.beginSignIn({ clientId, redirectUrl, toPush });
    const answer = waitForAnswer(page.state, stop.signal);
    opened.location.replace(page.url);
    await studio.worker.finishSignIn(await answer);
    const { name } = await studio.worker.hubAccount();
    editSignIn(studio, { hasToken: true, signedInAs: name });
    retryRefused(studio);
  } catch (thrown) {
    opened?.close();
    notifyError(studio, thrown);
  } finally {
    if (studio.transient.signIn === stop) {
      studio.transient.signIn = null;
      editSignIn(studio, { signingIn: false });
    }
  }
}

/** Waits no longer; the hub's window may stay. */
export function neverMind(studio: Studio): void {
  studio.transient.signIn?.abort();
}

function editSignIn(
  studio: Studio,
  change: { signingIn?: boolean; hasToken?: boolean; signedInAs?: string },
) {
  studio.store.setState((s) => ({ hub: { ...s.hub, ...change } }));
}

function waitForAnswer(state: string, signal: AbortSignal): Promise<SignInAnswer> {
  let close = () => {};
  return new Promise<SignInAnswer>((resolve, reject) => {
    const channel = openBroadcast<SignInMessage>(SIGN_IN_CHANNEL, (message) => {
      // other tabs may be signing in too
      if (!('answer' in message) || message.answer.state !== state) return;
      channel.say({ taken: state });
      resolve(message.answer);
    });
    close = channel.close;
    const stop = () =>
      reject(new AmalgamError('Cancelled', 'The sign-in was canceled.', 'Sign in again when you like.'));
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
  }).finally(() => close());
}
