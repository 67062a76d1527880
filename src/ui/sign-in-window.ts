/** The window that the hub sends back to Amalgam: it hands the answer to the tab that asked, and closes. */
import { openBroadcast } from '../platform';
import type { SignInAnswer } from '../reports/push';

/** Between the tab that asked and this window, of one origin. */
export const SIGN_IN_CHANNEL = 'amalgam-sign-in';
export type SignInMessage = { answer: SignInAnswer } | { taken: string };

/** Milliseconds until nobody will take the answer any more. */
const PATIENCE = 5000;

/** The hub's answer in the query of this address, or null when it is none. */
export function answerIn(search: string): SignInAnswer | null {
  const query = new URLSearchParams(search);
  const state = query.get('state');
  const code = query.get('code');
  const error = query.get('error');
  if (state === null || (code === null && error === null)) return null;
  return { state, ...(code === null ? {} : { code }), ...(error === null ? {} : { error }) };
}

/** Hands the answer over and takes it out of the address, so that it stays neither there nor in the history. */
export function handOver(answer: SignInAnswer, element: HTMLElement): void {
  history.replaceState(null, '', location.pathname);
  element.textContent = 'Signing in…';
  const timer = setTimeout(() => {
    element.textContent =
      'No tab of Amalgam waits for this sign-in. Close this window and sign in again from the tab you work in.';
    channel.close();
  }, PATIENCE);
  const channel = openBroadcast<SignInMessage>(SIGN_IN_CHANNEL, (message) => {
    if (!('taken' in message) || message.taken !== answer.state) return;
    clearTimeout(timer);
    channel.close();
    // where the browser does not let a page close itself
    element.textContent = 'You can close this window.';
    window.close();
  });
  channel.say({ answer });
}
