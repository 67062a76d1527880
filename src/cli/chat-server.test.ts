import { request } from 'node:http';
import { afterEach, expect, test } from 'vitest';
import { AmalgamError } from '../errors';
import type { GenerateReport } from '../reports/evaluate';
import { type Answering, serveChat } from './chat-server';
import { shortName, steeredRecipe } from './steered-recipe';

const REPORT: GenerateReport = {
  ...{ text: 'Hello you', promptTokens: 5, ids: [1, 2], tokens: [], ended: 'stop' },
  ...{ tokensPerSecond: 1, engine: 'cpu', adapter: 'cpu', seconds: 1, peakBytes: 1 },
};
const DEFAULTS = { maxTokens: 9, temperature: 0.5, topP: 0.9, seed: 7 };

let close = async () => {};
afterEach(() => close());

/** A server that answers `Hello you` in two pieces, and what it was asked. */
async function serve(answering: Partial<Answering> = {}) {
  const asked: unknown[] = [];
  const server = await serveChat(
    {
      name: 'merge',
      defaults: DEFAULTS,
      async answer(what, steering, onText) {
        asked.push([what, steering]);
        onText('Hello');
        onText(' you');
        return REPORT;
      },
      cancel: async () => {},
      ...answering,
    },
    0,
  );
  close = server.close;
  const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    fetch(`${server.url}/${path}`, {
      ...{ method: 'POST', headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
  return { ...server, asked, post };
}
const USER = [{ role: 'user', content: 'Hi' }];

test('a conversation is answered whole, with the defaults and weights of its own', async () => {
  const { post, asked } = await serve();
  const answer = await post('chat/completions', {
    messages: [...USER, { role: 'user', content: [{ type: 'text', text: 'there' }] }],
    ...{ max_tokens: 3, seed: 1, user: 'me' },
    amalgam: { weights: { a: 0.5 }, parameters: { lambda: 2 } },
  });
  expect(await answer.json()).toMatchObject({
    ...{ object: 'chat.completion', model: 'merge' },
    choices: [{ index: 0, message: { role: 'assistant', content: 'Hello you' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 },
  });
  const sampling = { ...DEFAULTS, maxTokens: 3, seed: 1 };
  const messages = [...USER, { role: 'user', content: 'there' }];
  expect(asked).toEqual([
    [
      { prompt: '', messages, ...sampling },
      { weights: { a: 0.5 }, parameters: { lambda: 2 } },
    ],
  ]);
});

test('a stream has the text piece by piece, its end, and the usage where it is asked for', async () => {
  const { post } = await serve();
  const stream = { stream: true, stream_options: { include_usage: true } };
  const answer = await post('chat/completions', { messages: USER, ...stream });
  expect(answer.headers.get('content-type')).toBe('text/event-stream');
  const events = (await answer.text()).split('\n\n').map((line) => line.replace(/^data: /, ''));
  expect(events.slice(-2)).toEqual(['[DONE]', '']);
  const chunks = events.slice(0, -2).map((event) => JSON.parse(event) as Record<string, unknown>);
  expect(chunks.map(({ choices }) => choices)).toEqual([
    [{ index: 0, delta: { role: 'assistant', content: 'Hello' }, finish_reason: null }],
    [{ index: 0, delta: { content: ' you' }, finish_reason: null }],
    [{ index: 0, delta: { content: '' }, finish_reason: 'stop' }],
    [],
  ]);
  expect(chunks.at(-1)).toMatchObject({ object: 'chat.completion.chunk', usage: { total_tokens: 7 } });
  const text = await (await post('completions', { prompt: 'x', stream: true })).text();
  expect(text).toContain('"text":"Hello"');
});

test.each([
  ['completions', 'no JSON', 400, /not JSON/],
  ['completions', { prompt: 3 }, 400, /^prompt: /],
  ['completions', { prompt: 'a', stop: ['x'] }, 400, /stop is not supported/],
  ['completions', { prompt: 'a', n: 2 }, 400, /n is not supported/],
  ['completions', { prompt: 'a', temperature: -1 }, 400, /^temperature: /],
  ['completions', { prompt: 'a', amalgam: { weigths: {} } }, 400, /weigths/],
  ['chat/completions', { messages: [] }, 400, /^messages: /],
  ['chat/completions', { messages: USER, tools: [{}] }, 400, /tools is not supported/],
  ['embeddings', {}, 404, /no \/v1\/embeddings/],
  ['completions', { prompt: 'a'.repeat(2 ** 21) }, 413, /at most/],
])('%s %j is refused with %i', async (path, body, status, words) => {
  const { post, asked } = await serve();
  const answer = await post(path, body);
  expect(answer.status).toBe(status);
  expect(((await answer.json()) as { error: { message: string } }).error.message).toMatch(words);
  expect(asked).toEqual([]);
});

test('what says nothing of a field that is not supported is answered', async () => {
  const { post } = await serve();
  const answer = await post('completions', {
    ...{ prompt: 'a', n: 1, stop: null, tools: [], presence_penalty: 0, echo: false, max_tokens: null },
  });
  expect(answer.status).toBe(200);
});

test('pages of a browser are refused, by their origin and by the name that they call this machine', async () => {
  const { post, url, asked } = await serve();
  expect((await post('completions', { prompt: 'a' }, { Origin: 'https://example.com' })).status).toBe(403);
  const status = await new Promise((resolve) => {
    const options = { method: 'POST', headers: { Host: 'example.com' } };
    request(`${url}/completions`, options, (answer) => resolve(answer.resume().statusCode)).end('{}');
  });
  expect(status).toBe(403);
  expect(asked).toEqual([]);
});

test('an error of the model keeps its code and its next step; in a stream that has begun it is the last event', async () => {
  const broken = new AmalgamError('TokenizerUnsupported', 'No chat template.', 'Send a text.');
  const first = await serve({ answer: async () => Promise.reject(broken) });
  const answer = await first.post('chat/completions', { messages: USER });
  expect(answer.status).toBe(400);
  const error = { code: 'TokenizerUnsupported', message: 'No chat template. Send a text.' };
  expect(await answer.json()).toMatchObject({ error });
  await close();
  const second = await serve({
    async answer(_, __, onText) {
      onText('He');
      throw broken;
    },
  });
  const text = await (await second.post('completions', { prompt: 'a', stream: true })).text();
  expect(JSON.parse(text.split('data: ').at(-1)!)).toMatchObject({ error });
});

test('one request at a time; who leaves is stopped, and the next one is answered', async () => {
  let running = 0;
  let most = 0;
  let canceled = () => {};
  const begun: (() => void)[] = [];
  const { post } = await serve({
    async answer({ prompt }) {
      most = Math.max(most, ++running);
      for (const tell of begun.splice(0)) tell();
      if (prompt === 'long') await new Promise<void>((resolve) => (canceled = resolve));
      running--;
      return REPORT;
    },
    cancel: async () => canceled(),
  });
  const leaving = new AbortController();
  const isBegun = new Promise<void>((resolve) => begun.push(resolve));
  const url = (await post('completions', { prompt: 3 })).url;
  const long = fetch(url, {
    ...{ method: 'POST', body: JSON.stringify({ prompt: 'long' }), signal: leaving.signal },
  });
  await isBegun;
  const next = [post('completions', { prompt: 'a' }), post('completions', { prompt: 'b' })];
  leaving.abort();
  await expect(long).rejects.toThrow();
  expect((await Promise.all(next)).map(({ status }) => status)).toEqual([200, 200]);
  expect(most).toBe(1);
});

test('a port that is taken is told', async () => {
  const { url } = await serve();
  const port = Number(new URL(url).port);
  await expect(serveChat({ name: 'b' } as Answering, port)).rejects.toMatchObject({ code: 'Usage' });
});

test('names of contributors are their last parts; one that is nobody’s or two people’s is refused', () => {
  expect(shortName('/models/base+/models/kitchen')).toBe('kitchen');
  expect(shortName('owner/name@0123abc')).toBe('name');
  const recipe = {
    ...{ mergeMethod: 'linear', parameters: { lambda: 1 }, amalgam: {} },
    models: ['b+x/a', 'f/c', 'd/c'].map((model) => ({ model, parameters: { weight: 1 } })),
  };
  const steered = steeredRecipe(recipe, { weights: { a: 0.5 }, parameters: { lambda: 2 } });
  expect(steered.models!.map(({ parameters }) => parameters.weight)).toEqual([0.5, 1, 1]);
  expect(steered.parameters).toEqual({ lambda: 2 });
  expect(recipe.models[0]!.parameters.weight).toBe(1);
  expect(steeredRecipe(recipe, { weights: { 'd/c': 3 } }).models![2]!.parameters.weight).toBe(3);
  for (const name of ['nobody', 'c']) {
    expect(() => steeredRecipe(recipe, { weights: { [name]: 1 } })).toThrow(/called/);
  }
});
