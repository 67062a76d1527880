import { type ComponentProps, type SyntheticEvent, useState } from 'react';
import { AmalgamError } from '../../errors';
import { DEFAULT_HUB_URL } from '../../formats/hub-id';
import { openBroadcast } from '../../platform';
import type { SignInAnswer } from '../../reports/push';
import { remember } from '../local/local-files';
import { Button } from '../parts/Button';
import { SIGN_IN_CHANNEL, type SignInMessage } from '../sign-in-window';
import { retryRefused } from '../state/named-models';
import { askHub, editSlice, neverMind, noticed, notifyError, type Studio } from '../state/studio';
import { useStudio, useStudioState } from '../studio-context';

/** The hub, and the token for private and gated models, by signing in or pasted. Only the worker holds the token. */
export function HubSettings({ toPush = false }: { toPush?: boolean }) {
  const studio = useStudio();
  const hub = useStudioState((s) => s.hub);
  const [url, setUrl] = useState(hub.url);
  const [token, setToken] = useState('');
  const apply = async (change: { url: string } | { token: string | null }) => {
    neverMind(studio, SIGN_IN);
    await noticed(studio, async () => {
      await studio.worker.setHub(change);
      // a token belongs to the hub it was given for: another hub begins without
      const hasToken = 'token' in change && change.token !== null;
      if ('url' in change) remember('hub', change.url === DEFAULT_HUB_URL ? null : change.url);
      editSlice(studio, 'hub', { ...('url' in change && { url: change.url }), hasToken, signedInAs: null });
      setToken('');
      retryRefused(studio);
    });
  };
  const address = validUrl(url);
  const clientId = hubClientId();
  return (
    <details className="panel hub-settings">
      <summary>
        Access token and hub
        <span className="small quiet">
          {hub.signedInAs === null
            ? hub.hasToken
              ? ' · token set'
              : ''
            : ` · signed in as ${hub.signedInAs}`}
        </span>
        {hub.url === DEFAULT_HUB_URL ? null : <span className="small quiet"> · {hub.url}</span>}
      </summary>
      {clientId ? (
        <SignIn clientId={clientId} toPush={toPush} onSignOut={() => void apply({ token: null })} />
      ) : null}
      <Setting
        label="Token"
        type="password"
        placeholder={hub.hasToken ? 'set; paste another to replace it' : 'hf_…'}
        value={token}
        why={token.trim() === '' ? 'Paste a token first.' : null}
        onEdit={setToken}
        onUse={() => void apply({ token: token.trim() })}
      >
        {hub.hasToken && hub.signedInAs === null ? (
          <Button onClick={() => void apply({ token: null })}>Forget</Button>
        ) : null}
      </Setting>
      <p className="small quiet">
        For private and gated models. Kept in memory until this tab closes, and sent to the hub below only.
      </p>
      <Setting
        label="Hub"
        inputMode="url"
        spellCheck={false}
        aria-invalid={address === null || undefined}
        value={url}
        why={
          address === null
            ? 'This is not a web address.'
            : address === hub.url
              ? 'This is the current hub.'
              : null
        }
        onEdit={setUrl}
        onUse={() => address !== null && void apply({ url: address })}
      />
    </details>
  );
}

interface SettingProps extends ComponentProps<'input'> {
  label: string;
  /** Why it cannot be used as it is, or null. */
  why: string | null;
  onEdit(value: string): void;
  onUse(): void;
}

/** A field that counts once its button is pressed. */
function Setting({ label, why, onEdit, onUse, children, ...field }: SettingProps) {
  const use = (event: SyntheticEvent) => {
    event.preventDefault();
    if (why === null) onUse();
  };
  return (
    <form className="row" onSubmit={use}>
      <label className="labeled grow">
        <span>{label}</span>
        <input
          className="field mono"
          autoComplete="off"
          onChange={(event) => onEdit(event.target.value)}
          {...field}
        />
      </label>
      <Button type="submit" why={why} onClick={use}>
        Use
      </Button>
      {children}
    </form>
  );
}

/** Signing in on the hub's own page, where this build of the studio is known to the hub. */
function SignIn(props: { clientId: string; toPush: boolean; onSignOut(): void }) {
  const studio = useStudio();
  const { clientId, toPush, onSignOut } = props;
  const { url, signedInAs, signingIn, online } = useStudioState((s) => s.hub);
  const host = new URL(url).host;
  return (
    <div className="row">
      {signedInAs !== null ? (
        <Button onClick={onSignOut}>Sign out</Button>
      ) : signingIn ? (
        <>
          <span className="spacer" role="status">
            Waiting for you to agree in the window of {host}…
          </span>
          <Button onClick={() => neverMind(studio, SIGN_IN)}>Cancel</Button>
        </>
      ) : (
        <Button
          why={online ? null : 'This device is offline.'}
          onClick={() => void signIn(studio, clientId, toPush)}
        >
          Sign in to {host}
        </Button>
      )}
      {signedInAs === null && !signingIn ? (
        <span className="small quiet">
          {toPush
            ? 'Asks to read what you may read, to create repositories, and to write to those created here.'
            : 'Asks to read what you may read, nothing else.'}
        </span>
      ) : null}
    </div>
  );
}

/** The address without a slash at its end, or null when it is none. */
function validUrl(text: string): string | null {
  if (!URL.canParse(text)) return null;
  const { protocol, href } = new URL(text);
  return protocol === 'https:' || protocol === 'http:' ? href.replace(/\/$/, '') : null;
}

// Signing in to the hub in a window of its own. That window comes back to Amalgam with a code and hands it to this tab
// (`sign-in-window.ts`); the worker trades it for a token. Nothing of it is stored, and this page never sees the token.

declare global {
  interface Window {
    /** Variables that a static Space of the Hub sets for the page (huggingface.co/docs/hub/spaces-oauth). */
    huggingface?: { variables?: { OAUTH_CLIENT_ID?: string } };
  }
}

/**
 * Client id of this page at the hub: of its host, else its `<meta name="hub-client-id">`, else the build (docs/hosting.md);
 * without one there is only pasting a token.
 */
export function hubClientId(): string | undefined {
  const told = window.huggingface?.variables?.OAUTH_CLIENT_ID || stoppedVariable('OAUTH_CLIENT_ID');
  const written = document.querySelector<HTMLMetaElement>('meta[name="hub-client-id"]')?.content;
  return told || written || import.meta.env.VITE_HF_CLIENT_ID;
}

/** A variable of a Space whose script our own policy has stopped; it is read from the script's text, which never runs. */
function stoppedVariable(name: string): string | undefined {
  const value = new RegExp(`["']?${name}["']?\\s*:\\s*"([\\w-]+)"`);
  const texts = [...document.querySelectorAll('script:not([src])')].map(
    ({ textContent }) => textContent ?? '',
  );
  return texts.find((text) => text.includes('huggingface'))?.match(value)?.[1];
}

/**
 * Opens the hub's page and waits until the user has agreed there. Call it from a click: browsers open windows for nothing
 * else. Never rejects; the page shows the errors.
 */
async function signIn(studio: Studio, clientId: string, toPush: boolean): Promise<void> {
  const opened = window.open('', '_blank', 'popup,width=560,height=760');
  const ask = async (signal: AbortSignal) => {
    if (!opened) {
      throw new AmalgamError(
        'NotFound',
        'The browser did not open the window to sign in.',
        'Allow this page to open windows, or paste an access token.',
      );
    }
    // the hub's page gets no handle on this one
    opened.opener = null;
    editSlice(studio, 'hub', { signingIn: true });
    const redirectUrl = new URL('.', location.href).href.replace(/[?#].*$/, '');
    const page = await studio.worker.beginSignIn({ clientId, redirectUrl, toPush });
    const answer = waitForAnswer(page.state, signal);
    opened.location.replace(page.url);
    await studio.worker.finishSignIn(await answer);
    editSlice(studio, 'hub', { hasToken: true });
    const { name } = await studio.worker.hubAccount(signal);
    editSlice(studio, 'hub', { signedInAs: name });
    retryRefused(studio);
  };
  try {
    await askHub(studio, SIGN_IN, ask);
  } catch (thrown) {
    opened?.close();
    notifyError(studio, thrown);
  } finally {
    if (!studio.transient.asking.has(SIGN_IN)) editSlice(studio, 'hub', { signingIn: false });
  }
}

/** What waits no longer where it is ended; the hub's window may stay. */
const SIGN_IN = 'sign-in';

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
      reject(new AmalgamError('Canceled', 'The sign-in was canceled.', 'Sign in again when you like.'));
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
  }).finally(() => close());
}
