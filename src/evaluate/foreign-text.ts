/**
 * Chat templates and tokenizers are small programs from somebody else: a template may loop, an expression of a tokenizer
 * may backtrack for hours. They run in a thread that is ended when it takes too long; the session stays as it is.
 */
import * as Comlink from 'comlink';
import { AmalgamError } from '../errors';
import type { ChatTemplate } from '../formats/chat-template';
import type { Message } from '../formats/conversations';
import { type Task, taskInvalid } from '../tasks/task-file';
import type { Item, ItemOptions, TaskRows } from '../tasks/task-items';
import type { Answer, ForeignTextThread } from './foreign-text-thread';
import { type ForeignTextPort, startForeignText } from './start-foreign-text';
import type { Tokenizer, TokenizerFiles } from './tokenizer';

/** What a template, and the reading of a large tokenizer, may take: real ones take milliseconds, and two seconds. */
const DEADLINE_MS = 30_000;
/** And for each character of a text: a slow machine does a hundred of them in a millisecond. */
const DEADLINE_MS_PER_CHARACTER = 0.5;
/** And for each row of a task, or conversation: a slow machine renders one in a few milliseconds. */
const DEADLINE_MS_PER_RENDERING = 50;

let start: () => ForeignTextPort = startForeignText;

/** Has threads started otherwise: those of Node are not those of a browser. */
export function startForeignTextWith(given: () => ForeignTextPort): void {
  start = given;
}

/** A tokenizer that cannot hang this thread: nothing of it runs here. */
export type GuardedTokenizer = Pick<
  Tokenizer,
  'size' | 'prefix' | 'suffix' | 'mask' | 'prefixToken' | 'maxLength'
> & {
  /** Ids as those of {@link Tokenizer}. @throws AmalgamError `TokenizerUnsupported` when it takes too long */
  encode(text: string): Promise<number[]>;
  /** The same for many short texts. */
  encodeAll(texts: readonly string[]): Promise<number[][]>;
  /** A decoder as that of {@link Tokenizer}, in a thread that stays until it is closed. @throws as `encode` */
  stream(): GuardedStream;
};

export interface GuardedStream {
  push(id: number): Promise<string>;
  end(): Promise<string>;
  close(): void;
}

/**
 * Opens a tokenizer. A thread is for one call: calls are few and long, and one that stays would keep the vocabulary.
 * @param deadlineMs tests shorten it
 * @throws AmalgamError as `createTokenizer`, and `TokenizerUnsupported` when it takes too long
 */
export async function guardedTokenizer(
  files: TokenizerFiles,
  label: string,
  deadlineMs = DEADLINE_MS,
): Promise<GuardedTokenizer> {
  const tooLong = () =>
    new AmalgamError(
      'TokenizerUnsupported',
      `The tokenizer of ${label} did not finish on this text and was stopped.`,
      'Its expressions take too long. Use the tokenizer.json of its base, or give token ids instead of text.',
    );
  const open = async () => {
    const thread = startThread();
    try {
      return {
        thread,
        vocabulary: await thread.ask((calls) => calls.open(files, label), deadlineMs, tooLong),
      };
    } catch (thrown) {
      thread.close();
      throw thrown;
    }
  };
  const { thread: first, vocabulary } = await open();
  first.close();
  const encodeAll = async (texts: readonly string[]) => {
    const { thread } = await open();
    const characters = texts.reduce((sum, { length }) => sum + length, 0);
    const patience = deadlineMs + characters * DEADLINE_MS_PER_CHARACTER;
    return thread.ask((calls) => calls.encodeAll(texts), patience, tooLong).finally(thread.close);
  };
  return {
    ...vocabulary,
    encodeAll,
    encode: async (text) => (await encodeAll([text]))[0] ?? [],
    stream() {
      const opened = open();
      // whoever pushes hears of it
      opened.catch(() => undefined);
      const ask = async (act: (calls: Calls) => Promise<Answer<string>>) =>
        (await opened).thread.ask(act, deadlineMs, tooLong);
      return {
        push: (id) => ask((calls) => calls.push(id)),
        end: () => ask((calls) => calls.end()),
        close: () =>
          void opened.then(
            ({ thread }) => thread.close(),
            () => undefined,
          ),
      };
    },
  };
}

/**
 * Conversations as a model reads them: each ends where the assistant begins, or whole.
 * @param deadlineMs tests shorten it
 * @throws AmalgamError `TokenizerInvalid` when the template does not render, or does not end
 */
export function renderGuarded(
  chat: ChatTemplate,
  conversations: Message[][],
  toAnswer: boolean,
  deadlineMs = DEADLINE_MS,
): Promise<string[]> {
  const thread = startThread();
  const tooLong = () =>
    new AmalgamError(
      'TokenizerInvalid',
      'The chat template did not finish and was stopped.',
      'Write the text out as plain text instead.',
    );
  const patience = deadlineMs + (conversations.length - 1) * DEADLINE_MS_PER_RENDERING;
  return thread
    .ask((calls) => calls.render(chat, conversations, toAnswer), patience, tooLong)
    .finally(thread.close);
}

/**
 * The items of a task, whose templates come from whoever wrote it.
 * @throws AmalgamError as `buildItems`, and `TaskInvalid` when its templates do not come to an end
 */
export function buildItemsGuarded(task: Task, rows: TaskRows, options: ItemOptions): Promise<Item[]> {
  const thread = startThread();
  const tooLong = () => taskInvalid(task.name, 'its templates did not finish and were stopped');
  const items = Math.min(rows.rows.length, options.limit ?? rows.rows.length);
  const patience = DEADLINE_MS + items * (1 + options.fewshot) * DEADLINE_MS_PER_RENDERING;
  return thread.ask((calls) => calls.items(task, rows, options), patience, tooLong).finally(thread.close);
}

type Calls = Comlink.Remote<ForeignTextThread>;

function startThread() {
  const port = start();
  const calls = Comlink.wrap<ForeignTextThread>(port.endpoint);
  const died = new Promise<never>((_, reject) =>
    port.onError((message) =>
      reject(
        new AmalgamError(
          'WorkerDied',
          `The thread that reads text stopped: ${message || 'it could not be started'}.`,
          'Try it again; if memory is short, close other programs.',
        ),
      ),
    ),
  );
  died.catch(() => undefined);
  return {
    /** What the thread answers. @throws AmalgamError its error, and `tooLong` after the deadline: the thread is gone then */
    async ask<T>(
      act: (calls: Calls) => Promise<Answer<T>>,
      deadlineMs: number,
      tooLong: () => AmalgamError,
    ): Promise<T> {
      let timer: ReturnType<typeof setTimeout> | undefined;
      const late = new Promise<never>((_, reject) => {
        timer = setTimeout(() => {
          port.terminate();
          reject(tooLong());
        }, deadlineMs);
      });
      const answer = await Promise.race([act(calls), late, died]).finally(() => clearTimeout(timer));
      if ('value' in answer) return answer.value;
      throw new AmalgamError(answer.error.code, answer.error.message, answer.error.hint);
    },
    close: () => port.terminate(),
  };
}
