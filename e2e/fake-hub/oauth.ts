/**
 * The signing-in half of the fake hub: OAuth 2.0 authorization code with PKCE for apps without a secret. A code is good
 * once, for the app, the address and the challenge it was asked with.
 */
import { createHash, randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { sendError, sendJson } from './answers.ts';

export interface FakeApp {
  clientId: string;
  /** Addresses it may send people back to, exactly. */
  redirectUrls: readonly string[];
}

interface Asked {
  clientId: string;
  redirectUrl: string;
  scope: string;
  challenge: string;
}

export interface OAuth {
  /** Answers a request for signing in; false when it is none. */
  answer(request: IncomingMessage, response: ServerResponse, asked: URL): Promise<boolean>;
}

/** @param onToken called with every token that is given, and what it is for */
export function fakeOAuth(
  apps: readonly FakeApp[],
  onToken: (token: string, scopes: readonly string[]) => void,
): OAuth {
  const codes = new Map<string, Asked>();
  const given = new Set<string>();

  function authorize(response: ServerResponse, query: URLSearchParams): void {
    const app = apps.find(({ clientId }) => clientId === query.get('client_id'));
    const redirectUrl = query.get('redirect_uri') ?? '';
    // never redirect to an address that is not registered
    if (!app?.redirectUrls.includes(redirectUrl)) {
      sendPage(response, 400, 'Unknown app or address.');
      return;
    }
    const challenge = query.get('code_challenge') ?? '';
    const state = query.get('state') ?? '';
    const back = (answer: Record<string, string>) =>
      `${redirectUrl}?${new URLSearchParams({ ...answer, state })}`;
    if (
      query.get('response_type') !== 'code' ||
      query.get('code_challenge_method') !== 'S256' ||
      !challenge
    ) {
      response.writeHead(302, { Location: back({ error: 'invalid_request' }) }).end();
      return;
    }
    const code = randomBytes(16).toString('hex');
    const scope = query.get('scope') ?? '';
    codes.set(code, { clientId: app.clientId, redirectUrl, scope, challenge });
    const link = (answer: Record<string, string>, text: string) =>
      `<a href="${back(answer).replaceAll('&', '&amp;')}">${text}</a>`;
    sendPage(response, 200, `${link({ code }, 'Authorize')} ${link({ error: 'access_denied' }, 'Deny')}`);
  }

  async function redeem(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = new URLSearchParams(Buffer.concat(chunks).toString());
    const code = body.get('code') ?? '';
    const asked = codes.get(code);
    codes.delete(code);
    const digest = createHash('sha256')
      .update(body.get('code_verifier') ?? '')
      .digest('base64url');
    const fits =
      body.get('grant_type') === 'authorization_code' &&
      asked?.redirectUrl === body.get('redirect_uri') &&
      asked?.challenge === digest;
    if (!asked || !fits) {
      response.setHeader('Content-Type', 'application/json');
      response.writeHead(400).end(JSON.stringify({ error: 'invalid_grant' }));
      return;
    }
    const token = `hf_oauth_${randomBytes(24).toString('hex')}`;
    given.add(token);
    onToken(token, asked.scope.split(' '));
    sendJson(response, { access_token: token, token_type: 'bearer', expires_in: 28800, scope: asked.scope });
  }

  return {
    async answer(request, response, asked) {
      if (asked.pathname === '/.well-known/openid-configuration') {
        const at = (path: string) => new URL(path, asked.origin).href;
        sendJson(response, {
          authorization_endpoint: at('/oauth/authorize'),
          token_endpoint: at('/oauth/token'),
          userinfo_endpoint: at('/oauth/userinfo'),
        });
        return true;
      }
      if (asked.pathname === '/oauth/userinfo') {
        const token = request.headers.authorization?.replace('Bearer ', '') ?? '';
        if (given.has(token))
          sendJson(response, { sub: 'id-writer', preferred_username: 'writer', orgs: [] });
        else sendError(response, 401, 'Invalid credentials in Authorization header');
        return true;
      }
      if (request.method === 'GET' && asked.pathname === '/oauth/authorize') {
        authorize(response, asked.searchParams);
        return true;
      }
      if (request.method === 'POST' && asked.pathname === '/oauth/token') {
        await redeem(request, response);
        return true;
      }
      return false;
    },
  };
}

function sendPage(response: ServerResponse, status: number, html: string): void {
  response.setHeader('Content-Type', 'text/html; charset=utf-8');
  response.writeHead(status).end(`<!doctype html><title>Fake hub</title>${html}`);
}
