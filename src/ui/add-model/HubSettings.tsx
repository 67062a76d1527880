import { type SyntheticEvent, useState } from 'react';
import { DEFAULT_HUB_URL } from '../../formats/hub-id';
import { remember } from '../local/remembered-choices';
import { Button } from '../parts/Button';
import { retryRefused } from '../state/named-models';
import { notifyError } from '../state/studio';
import { useStudio, useStudioState } from '../studio-context';
import { hubClientId, neverMind, signIn } from './sign-in';

/**
 * Which hub, and the token for private and gated models, by signing in or pasted. It is with the worker and kept nowhere
 * else.
 */
export function HubSettings({ toPush = false }: { toPush?: boolean }) {
  const studio = useStudio();
  const hub = useStudioState((s) => s.hub);
  const [url, setUrl] = useState(hub.url);
  const [token, setToken] = useState('');
  const apply = async (change: { url: string } | { token: string | null }) => {
    neverMind(studio);
    try {
      await studio.worker.setHub(change);
      // a token belongs to the hub it was given for: another hub begins without
      const hasToken = 'token' in change && change.token !== null;
      if ('url' in change) remember('hub', change.url === DEFAULT_HUB_URL ? null : change.url);
      studio.store.setState((s) => ({ hub: { ...s.hub, ...urlOf(change), hasToken, signedInAs: null } }));
      setToken('');
      retryRefused(studio);
    } catch (thrown) {
      notifyError(studio, thrown);
    }
  };
  const onToken = (event: SyntheticEvent) => {
    event.preventDefault();
    if (token.trim() !== '') void apply({ token: token.trim() });
  };
  const address = validUrl(url);
  const clientId = hubClientId();
  return (
    <details className="hub-settings">
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
      <form className="hub-setting" onSubmit={onToken}>
        <label className="labelled">
          <span>Token</span>
          <input
            className="field mono"
            type="password"
            autoComplete="off"
            placeholder={hub.hasToken ? 'set; paste another to replace it' : 'hf_…'}
            value={token}
            onChange={(event) => setToken(event.target.value)}
          />
        </label>
        <Button type="submit" why={token.trim() === '' ? 'Paste a token first.' : null} onClick={onToken}>
          Use
        </Button>
        {hub.hasToken && hub.signedInAs === null ? (
          <Button onClick={() => void apply({ token: null })}>Forget</Button>
        ) : null}
      </form>
      <p className="small quiet">
        For private and gated models. Kept in memory until this tab closes, and sent to the hub below only.
      </p>
      <form
        className="hub-setting"
        onSubmit={(event) => {
          event.preventDefault();
          if (address !== null) void apply({ url: address });
        }}
      >
        <label className="labelled">
          <span>Hub</span>
          <input
            className="field mono"
            inputMode="url"
            spellCheck={false}
            autoComplete="off"
            aria-invalid={address === null || undefined}
            value={url}
            onChange={(event) => setUrl(event.target.value)}
          />
        </label>
        <Button
          type="submit"
          why={
            address === null
              ? 'This is not a web address.'
              : address === hub.url
                ? 'This is the current hub.'
                : null
          }
          onClick={() => address !== null && void apply({ url: address })}
        >
          Use
        </Button>
      </form>
    </details>
  );
}

/** Signing in on the hub's own page, where this build of the studio is known to the hub. */
function SignIn(props: { clientId: string; toPush: boolean; onSignOut(): void }) {
  const studio = useStudio();
  const { clientId, toPush, onSignOut } = props;
  const { url, signedInAs, signingIn, online } = useStudioState((s) => s.hub);
  const host = new URL(url).host;
  return (
    <div className="hub-setting">
      {signedInAs !== null ? (
        <Button onClick={onSignOut}>Sign out</Button>
      ) : signingIn ? (
        <>
          <span className="spacer" role="status">
            Waiting for you to agree in the window of {host}…
          </span>
          <Button onClick={() => neverMind(studio)}>Cancel</Button>
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

function urlOf(change: { url: string } | { token: string | null }): { url?: string } {
  return 'url' in change ? { url: change.url } : {};
}

/** The address without a slash at its end, or null when it is none. */
function validUrl(text: string): string | null {
  if (!URL.canParse(text)) return null;
  const { protocol, href } = new URL(text);
  return protocol === 'https:' || protocol === 'http:' ? href.replace(/\/$/, '') : null;
}
