import { type SyntheticEvent, useState } from 'react';
import { DEFAULT_HUB_URL } from '../../formats/hub-id';
import { Button } from '../parts/Button';
import { notifyError } from '../state/studio';
import { useFacts, useStudio } from '../studio-context';

/** Which hub, and the token for private and gated models. The token goes to the worker and is kept nowhere else. */
export function HubSettings() {
  const studio = useStudio();
  const hub = useFacts((s) => s.hub);
  const [url, setUrl] = useState(hub.url);
  const [token, setToken] = useState('');
  const apply = async (change: { url?: string; token?: string | null }) => {
    try {
      await studio.engine.setHub(change);
      studio.store.setState((s) => ({
        hub: {
          ...s.hub,
          ...(change.url === undefined ? {} : { url: change.url }),
          ...(change.token === undefined ? {} : { hasToken: change.token !== null }),
        },
      }));
      setToken('');
    } catch (thrown) {
      notifyError(studio, thrown);
    }
  };
  const onToken = (event: SyntheticEvent) => {
    event.preventDefault();
    if (token.trim() !== '') void apply({ token: token.trim() });
  };
  const address = validUrl(url);
  return (
    <details className="hub-settings">
      <summary>
        Access token and hub
        <span className="small quiet">{hub.hasToken ? ' · token set' : ''}</span>
        {hub.url === DEFAULT_HUB_URL ? null : <span className="small quiet"> · {hub.url}</span>}
      </summary>
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
        {hub.hasToken ? <Button onClick={() => void apply({ token: null })}>Forget</Button> : null}
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
                ? 'This hub is in use.'
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

/** The address without a slash at its end, or null when it is none. */
function validUrl(text: string): string | null {
  if (!URL.canParse(text)) return null;
  const { protocol, href } = new URL(text);
  return protocol === 'https:' || protocol === 'http:' ? href.replace(/\/$/, '') : null;
}
