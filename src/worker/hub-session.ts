/** The hub the session talks to: its address, the token, a sign-in on its way, and what is waited for. */
import { AmalgamError } from '../errors';
import { DEFAULT_HUB_URL, parseHubId } from '../formats/hub-id';
import type { HubWait, SignInAnswer, SignInPage, SignInRequest } from '../reports/push';
import type { Hub } from '../sources/hub-request';
import type { SignIn } from '../sources/hub-sign-in';
import type { PublishedRecipe } from '../sources/published-recipe';

/** Another hub, another token (null: none), and where one is given. */
type HubChange = Pick<Hub, 'tokenFrom'> & { url?: string; token?: string | null };

export function openHubSession() {
  /** What is waited for, and what gives each of it up. */
  const waits = new Map<HubWait, () => void>();
  const listeners = new Set<(waits: HubWait[]) => void>();
  const publish = () => {
    for (const listener of listeners) listener([...waits.keys()]);
  };
  const at = (url: string): Hub => {
    const host = new URL(url).host;
    return {
      url,
      onWait({ seconds, ...why }, end) {
        const wait: HubWait = { ...why, until: Date.now() + seconds * 1000, host };
        waits.set(wait, end);
        publish();
        return () => {
          waits.delete(wait);
          publish();
        };
      },
    };
  };
  let hub = at(DEFAULT_HUB_URL);
  let signIn: SignIn | null = null;
  const forget = () => {
    delete hub.token;
    delete hub.mayWrite;
  };
  return {
    /** The hub as it is now. While its address stays it is one object, so that models already open follow its token. */
    hub: () => hub,
    async setHub({ url, token, tokenFrom }: HubChange): Promise<void> {
      if (url !== undefined && url !== hub.url) {
        // a token belongs to the hub it was given for
        forget();
        hub = at(url);
      }
      if (tokenFrom !== undefined) hub.tokenFrom = tokenFrom;
      if (token === undefined) return;
      forget();
      if (token !== null) hub.token = token;
    },
    /** How a model on the Hub was merged, by its own files. @throws NotFound where they do not say */
    async publishedRecipe(idOrUrl: string, signal?: AbortSignal): Promise<PublishedRecipe> {
      const { id, revision } = parseHubId(idOrUrl, hub.url);
      const { openHubModel } = await import('../sources/hub');
      const { publishedRecipe } = await import('../sources/published-recipe');
      return publishedRecipe(await openHubModel(hub, id, revision, signal), signal);
    },
    /** Begins a sign-in, in place of one that was begun before. What proves that it was us stays in the worker. */
    async beginSignIn(request: SignInRequest): Promise<SignInPage> {
      const { beginSignIn } = await import('../sources/hub-sign-in');
      const begun = await beginSignIn(hub, request);
      signIn = begun;
      return { url: begun.url, state: begun.state };
    },
    /**
     * Trades the hub's answer for a token, which stays in the worker as if it had been given to `setHub`.
     * @throws Unauthorized when the user declined, or the answer is not to the sign-in begun last; Offline, HubError
     */
    async finishSignIn(answer: SignInAnswer): Promise<void> {
      const begun = signIn;
      const asked = hub;
      // an answer to another sign-in does not end the one that is waited for
      if (answer.state === begun?.state) signIn = null;
      const { finishSignIn } = await import('../sources/hub-sign-in');
      const granted = await finishSignIn(asked, begun, answer);
      if (hub !== asked) {
        throw new AmalgamError(
          'Canceled',
          'Another hub was chosen while signing in.',
          'Sign in to that one.',
        );
      }
      Object.assign(hub, granted);
    },
    /** Reports what is waited for before a hub is asked again, whenever a wait begins or ends. Never resolves. */
    hubWaits(onWaits: (waits: HubWait[]) => void): Promise<never> {
      listeners.add(onWaits);
      return new Promise<never>(() => undefined);
    },
    /** Gives up everything that a hub is waited for: what asked for it ends as canceled. */
    async endHubWaits(): Promise<void> {
      for (const end of waits.values()) end();
    },
  };
}
