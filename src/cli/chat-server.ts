/**
 * An endpoint of this machine that speaks OpenAI's API (platform.openai.com/docs/api-reference): models, chat completions and
 * completions, whole or streamed. It answers from a recipe that is not merged, whose weights every request may set.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import * as v from 'valibot';
import { AmalgamError, errorReport } from '../errors';
import type { GenerateReport, GenerateRequest } from '../reports/evaluate';
import type { Steering } from './steered-recipe';

/** What answers. */
export interface Answering {
  /** The name that it has as a model. */
  name: string;
  /** Sampling where a request says nothing. */
  defaults: Pick<GenerateRequest, 'maxTokens' | 'temperature' | 'topP' | 'seed'>;
  /** Answers one request at a time. @throws AmalgamError */
  answer(
    asked: Pick<GenerateRequest, 'prompt' | 'messages' | 'maxTokens' | 'temperature' | 'topP' | 'seed'>,
    steering: Steering,
    onText: (text: string) => void,
  ): Promise<GenerateReport>;
  cancel(): Promise<void>;
}

const MOST_BYTES = 1 << 20;

const Content = v.union([
  v.string(),
  v.pipe(
    v.array(v.object({ type: v.literal('text'), text: v.string() })),
    v.transform((parts) => parts.map(({ text }) => text).join('')),
  ),
]);
const setting = v.union([v.number(), v.string(), v.boolean()]);
const shared = {
  max_tokens: v.nullish(v.pipe(v.number(), v.integer(), v.minValue(1))),
  max_completion_tokens: v.nullish(v.pipe(v.number(), v.integer(), v.minValue(1))),
  temperature: v.nullish(v.pipe(v.number(), v.minValue(0))),
  top_p: v.nullish(v.pipe(v.number(), v.gtValue(0), v.maxValue(1))),
  seed: v.nullish(v.pipe(v.number(), v.integer(), v.minValue(0), v.ltValue(2 ** 32))),
  stream: v.nullish(v.boolean()),
  stream_options: v.nullish(v.object({ include_usage: v.nullish(v.boolean()) })),
  amalgam: v.nullish(
    v.strictObject({
      weights: v.optional(v.record(v.string(), v.number())),
      parameters: v.optional(v.record(v.string(), setting)),
    }),
  ),
};
const Chat = v.looseObject({
  ...shared,
  messages: v.pipe(v.array(v.object({ role: v.string(), content: Content })), v.minLength(1)),
});
const Completion = v.looseObject({ ...shared, prompt: v.string() });

/** Fields that would change the answer and do not, with what they may say all the same. */
const NOT_SUPPORTED: Readonly<Record<string, readonly unknown[]>> = {
  n: [1],
  best_of: [1],
  stop: [''],
  suffix: [''],
  echo: [false],
  tools: [],
  functions: [],
  logprobs: [false, 0],
  top_logprobs: [0],
  logit_bias: [],
  frequency_penalty: [0],
  presence_penalty: [0],
};

/**
 * Serves on 127.0.0.1. Pages of other sites are refused: they have another origin, or call this machine by a name of theirs.
 * @param port 0 for any free one
 * @throws AmalgamError `Usage` when the port is taken
 */
export async function serveChat(
  answering: Answering,
  port: number,
): Promise<{ url: string; close(): Promise<void> }> {
  let before: Promise<unknown> = Promise.resolve();
  let count = 0;
  const server = createServer((request, response) => {
    respond(request, response).catch((thrown: unknown) => refuse(response, thrown));
  });

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [path] = (request.url ?? '/').split('?', 1) as [string];
    const host = (request.headers.host ?? '').replace(/:\d+$/, '');
    if (!['127.0.0.1', 'localhost'].includes(host) || request.headers.origin !== undefined) {
      throw new Refusal(403, 'Only programs of this machine are answered, not pages of a browser.');
    }
    if (path === '/v1/models' && request.method === 'GET') {
      return send(response, 200, { object: 'list', data: [modelOf(answering.name)] });
    }
    const isChat = path === '/v1/chat/completions';
    if (!isChat && path !== '/v1/completions') throw new Refusal(404, `There is no ${path}.`);
    if (request.method !== 'POST') throw new Refusal(405, `${path} takes POST.`);
    const body = await bodyOf(request);
    refuseUnsupported(body);
    const asked = isChat ? read(Chat, body) : { ...read(Completion, body), messages: undefined };
    const turn = before.then(() => (response.destroyed ? undefined : answer(asked, response)));
    before = turn.catch(() => undefined);
    await turn;
  }

  async function answer(
    asked: v.InferOutput<typeof Chat> | (v.InferOutput<typeof Completion> & { messages: undefined }),
    response: ServerResponse,
  ): Promise<void> {
    const { defaults } = answering;
    const isChat = asked.messages !== undefined;
    const head = {
      id: `${isChat ? 'chatcmpl' : 'cmpl'}-${++count}`,
      object: isChat ? 'chat.completion' : 'text_completion',
      created: Math.floor(Date.now() / 1000),
      model: answering.name,
    };
    const streamed = isChat ? { ...head, object: 'chat.completion.chunk' } : head;
    const choice = (text: string, ended: string | null, isFirst = false) => ({
      index: 0,
      ...(isChat ? { delta: { ...(isFirst && { role: 'assistant' }), content: text } } : { text }),
      finish_reason: ended,
    });
    const chunk = (data: unknown) => response.write(`data: ${JSON.stringify(data)}\n\n`);
    let isBegun = false;
    const stop = () => void answering.cancel();
    response.once('close', stop);
    try {
      const report = await answering.answer(
        {
          prompt: asked.messages ? '' : String(asked.prompt),
          ...(asked.messages && { messages: asked.messages }),
          maxTokens: asked.max_completion_tokens ?? asked.max_tokens ?? defaults.maxTokens,
          temperature: asked.temperature ?? defaults.temperature,
          topP: asked.top_p ?? defaults.topP,
          seed: asked.seed ?? defaults.seed,
        },
        asked.amalgam ?? {},
        (text) => {
          if (!asked.stream || text === '') return;
          if (!isBegun) response.writeHead(200, { 'Content-Type': 'text/event-stream' });
          chunk({ ...streamed, choices: [choice(text, null, !isBegun)] });
          isBegun = true;
        },
      );
      const usage = {
        prompt_tokens: report.promptTokens,
        completion_tokens: report.ids.length,
        total_tokens: report.promptTokens + report.ids.length,
      };
      const finish_reason = report.ended;
      if (!asked.stream) {
        const said = isChat
          ? { message: { role: 'assistant', content: report.text } }
          : { text: report.text };
        return send(response, 200, { ...head, choices: [{ index: 0, ...said, finish_reason }], usage });
      }
      if (!isBegun) response.writeHead(200, { 'Content-Type': 'text/event-stream' });
      chunk({ ...streamed, choices: [choice('', finish_reason, !isBegun)] });
      if (asked.stream_options?.include_usage) chunk({ ...streamed, choices: [], usage });
      response.end('data: [DONE]\n\n');
    } catch (thrown) {
      if (!isBegun) throw thrown;
      // the status is sent already
      chunk(errorBody(thrown));
      response.end();
    } finally {
      response.off('close', stop);
    }
  }

  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) =>
      reject(
        new AmalgamError('Usage', `Port ${port} cannot be used: ${cause.message}.`, 'Choose another one.', {
          cause,
        }),
      ),
    );
    server.listen(port, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const modelOf = (id: string) => ({ id, object: 'model', created: 0, owned_by: 'amalgam' });

/** An answer that is none, with the status it has. */
class Refusal extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** @throws Refusal for a field that asks for what is not done */
function refuseUnsupported(body: unknown): void {
  const fields = new Map(Object.entries(Object(body) as object));
  const odd = Object.entries(NOT_SUPPORTED).find(([name, may]) => {
    const value: unknown = fields.get(name) ?? undefined;
    const isEmpty = value === undefined || (Array.isArray(value) && value.length === 0);
    return !isEmpty && !may.includes(value);
  });
  if (odd) throw new Refusal(400, `${odd[0]} is not supported.`);
}

function read<S extends v.GenericSchema>(schema: S, body: unknown): v.InferOutput<S> {
  const { success, output, issues } = v.safeParse(schema, body);
  if (success) return output;
  const [{ message, path }] = issues;
  throw new Refusal(400, [path?.map(({ key }) => String(key)).join('.'), message].filter(Boolean).join(': '));
}

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    length += piece.length;
    if (length > MOST_BYTES) throw new Refusal(413, `A request has at most ${MOST_BYTES} bytes.`);
    pieces.push(piece);
  }
  try {
    return JSON.parse(Buffer.concat(pieces).toString('utf8'));
  } catch {
    throw new Refusal(400, 'The body is not JSON.');
  }
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'Content-Type': 'application/json' });
  response.end(JSON.stringify(body));
}

function errorBody(thrown: unknown): { error: { message: string; type: string; code: string | null } } {
  if (thrown instanceof Refusal)
    return { error: { message: thrown.message, type: 'invalid_request_error', code: null } };
  const { code, message, hint } = errorReport(thrown);
  const type = code === 'Internal' ? 'server_error' : 'invalid_request_error';
  return { error: { message: `${message} ${hint}`, type, code } };
}

function refuse(response: ServerResponse, thrown: unknown): void {
  if (response.destroyed) return;
  const body = errorBody(thrown);
  const status = thrown instanceof Refusal ? thrown.status : body.error.type === 'server_error' ? 500 : 400;
  send(response, status, body);
}
