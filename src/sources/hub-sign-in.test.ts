import { createHash } from 'node:crypto';
import { expect, test, vi } from 'vitest';
import type { FakeHub } from '../../e2e/fake-hub';
import { startFakeHub } from '../../e2e/fake-hub';
import { beginSignIn, finishSignIn, type SignIn } from './hub-sign-in';
import { hubAccount } from './hub-upload';

const clientId = 'app';
const redirectUrl = 'https://studio.example/amalgam/';
const begin = (hub: FakeHub, toPush = false) =>
  beginSignIn({ url: hub.url }, { clientId, redirectUrl, toPush });

async function withHub(act: (hub: FakeHub) => Promise<void>): Promise<void> {
  const hub = await startFakeHub({ models: [], apps: [{ clientId, redirectUrls: [redirectUrl] }] });
  try {
    await act(hub);
  } finally {
    await hub.close();
  }
}

/** Agrees on the hub's page; returns what the hub adds to the address it sends the user back to. */
async function agree({ url, state }: SignIn): Promise<{ state: string; code: string }> {
  const href = /href="([^"]+)">Authorize/.exec(await (await fetch(url)).text())![1]!.replaceAll('&amp;', '&');
  const back = new URL(href);
  expect(`${back.origin}${back.pathname}`).toBe(redirectUrl);
  expect(back.searchParams.get('state')).toBe(state);
  return { state, code: back.searchParams.get('code')! };
}

test('the code is traded for a token, which reads as the person and may write only where that was asked', async () => {
  await withHub(async (hub) => {
    const reading = await begin(hub);
    const { token, mayWrite } = await finishSignIn({ url: hub.url }, reading, await agree(reading));
    expect(mayWrite).toBe(false);
    expect(await hubAccount({ url: hub.url, token, mayWrite })).toMatchObject({
      name: 'writer',
      mayWrite: false,
    });
    const pushing = await begin(hub, true);
    const granted = await finishSignIn({ url: hub.url, token }, pushing, await agree(pushing));
    expect(granted.mayWrite).toBe(true);
    expect(granted.token).not.toBe(token);
    // the token of before is not shown where a new one is asked for
    const asked = hub.requests.filter((r) => r.path === '/oauth/token');
    expect(asked.map((r) => r.authorization)).toEqual([undefined, undefined]);
  });
});

test('the page asked for carries the S256 challenge, the least scopes, and nothing that is secret', async () => {
  await withHub(async (hub) => {
    const [one, other] = await Promise.all([begin(hub), begin(hub, true)]);
    const { origin, searchParams: query } = new URL(one.url);
    expect(origin).toBe(hub.url);
    expect(Object.fromEntries(query)).toEqual({
      client_id: clientId,
      redirect_uri: redirectUrl,
      response_type: 'code',
      scope: 'openid profile read-repos gated-repos',
      state: one.state,
      code_challenge: createHash('sha256').update(one.verifier).digest('base64url'),
      code_challenge_method: 'S256',
    });
    expect(one.url).not.toContain(one.verifier);
    // RFC 7636, 4.1: 43 to 128 unreserved characters
    expect(one.verifier).toMatch(/^[A-Za-z0-9._~-]{43,128}$/);
    expect(new URL(other.url).searchParams.get('scope')).toBe(
      'openid profile read-repos gated-repos contribute-repos',
    );
    expect(new Set([one.state, one.verifier, other.state, other.verifier]).size).toBe(4);
  });
});

test('R32: another verifier, a code used twice, another sign-in and another hub are refused', async () => {
  await withHub(async (hub) => {
    const at = { url: hub.url };
    const refused = (begun: SignIn | null, answer: Parameters<typeof finishSignIn>[2], where = at) =>
      expect(finishSignIn(where, begun, answer)).rejects.toMatchObject({ code: 'Unauthorized' });

    const stolen = await begin(hub);
    await refused({ ...stolen, verifier: 'a'.repeat(43) }, await agree(stolen));
    const once = await begin(hub);
    const answer = await agree(once);
    await finishSignIn(at, once, answer);
    await refused(once, answer);

    const before = hub.requests.length;
    await refused(await begin(hub), { ...(await agree(await begin(hub))) });
    await refused(null, answer);
    await refused(once, answer, { url: 'http://127.0.0.1:1' });
    await refused(once, { state: once.state, error: 'access_denied' });
    expect(hub.requests.slice(before).filter((r) => r.path === '/oauth/token')).toEqual([]);
  });
});

test('what is no answer of a hub, and no answer at all, is said in words', async () => {
  await withHub(async (hub) => {
    const begun = await begin(hub);
    const odd: [string, () => Promise<Response>, string][] = [
      ['a page', async () => new Response('<html>'), 'HubError'],
      ['no token', async () => Response.json({}), 'HubError'],
      ['a refusal', async () => Response.json({ error: 'invalid_grant' }, { status: 400 }), 'Unauthorized'],
      ['a fault', async () => new Response('', { status: 502 }), 'HubError'],
      ['no connection', () => Promise.reject(new TypeError('failed')), 'Offline'],
    ];
    for (const [what, answer, code] of odd) {
      const asked = vi.spyOn(globalThis, 'fetch').mockImplementation(answer);
      const answers = { state: begun.state, code: 'c' };
      await expect(finishSignIn({ url: hub.url }, begun, answers), what).rejects.toMatchObject({ code });
      await expect(begin(hub), what).rejects.toMatchObject({ code });
      asked.mockRestore();
    }
  });
});
