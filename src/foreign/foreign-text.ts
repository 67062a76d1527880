/**
 * Chat templates, tokenizers and patterns are small programs from somebody else: a template may loop, an expression may
 * backtrack for hours; a file may claim what it does not hold. They are read in a thread that is ended when it takes too
 * long, or when it is no longer wanted; the session stays as it is.
 */

import * as Comlink from 'comlink';
import { AmalgamError } from '../errors';
import type { ModulePattern } from '../formats/adapter-config';
import type { ChatTemplate } from '../formats/chat-template';
import type { Message } from '../formats/conversations';
import { displayName } from '../formats/names';
import { rethrow, rooted, startThread, type WorkerPort } from '../platform';
import type { ByteSource } from '../sources/byte-source';
import { canceled } from '../sources/cancellation';
import { notRendered, type Rendered } from './chat-template';
import workerUrl from './foreign-text.worker?worker&url';
import { isPlainPattern, PlainPaths } from './module-pattern';
import type { ParquetColumns, Row } from './parquet';
import type { ForeignTextThread } from './thread';
import type { Tokenizer, TokenizerFiles } from './tokenizer';

/** Limit in ms for a template on some conversations, and for reading a tokenizer: real ones take milliseconds, and two seconds. */
const DEADLINE_MS = 30_000;
/** And for each character of a text, which is as long as was asked for: a slow machine does a hundred in a millisecond. */
const DEADLINE_MS_PER_CHARACTER = 0.02;
/** Limit for a page or row group of parquet, its bytes not waited for. */
const PAGE_DEADLINE_MS = 10_000;
const PATTERN_DEADLINE_MS = 2000;
/** Texts or conversations, and their characters, that are read within one deadline. */
const BATCH = { items: 256, characters: 1 << 20 };
/** Plain patterns of different forms × paths, about two seconds. */
const MOST_COMPARED = 1e8;

let start = () => startThread(workerUrl, 'amalgam-foreign-text');

/** Has threads started otherwise: those of Node are not those of a browser. */
export function startForeignTextWith(given: () => WorkerPort): void {
  start = given;
}

/** A tokenizer that cannot hang this thread: nothing of it runs here. */
export type GuardedTokenizer = Pick<
  Tokenizer,
  'size' | 'ownSize' | 'prefix' | 'suffix' | 'pair' | 'mask' | 'prefixToken' | 'maxLength'
> & {
  /** Ids as those of {@link Tokenizer}. @throws AmalgamError `TokenizerUnsupported` when it takes too long, `Canceled` */
  encode(text: string): Promise<number[]>;
  /** The same for many short texts. */
  encodeAll(texts: readonly string[]): Promise<number[][]>;
  /** A decoder as that of {@link Tokenizer}, in a thread that stays until it is closed. @throws as `encode` */
  stream(before?: readonly number[]): GuardedStream;
  /** Ends the thread of one that stays, and what is asked of it. @throws nothing; what was asked rejects with `Canceled` */
  close(): void;
};

export interface GuardedStream {
  push(id: number): Promise<string>;
  end(): Promise<string>;
  close(): void;
}

/**
 * Opens a tokenizer. A thread is for one call: calls are few and long, and one that stays would keep the vocabulary.
 * @param signal ends whatever is asked of it
 * @param deadlineMs tests shorten it
 * @param stays one thread serves all calls, a stream at a time, until it is closed: for texts that follow one another
 * @throws AmalgamError as `createTokenizer`, and `TokenizerUnsupported` when it takes too long
 */
export async function guardedTokenizer(
  files: TokenizerFiles,
  label: string,
  signal?: AbortSignal,
  deadlineMs = DEADLINE_MS,
  stays = false,
): Promise<GuardedTokenizer> {
  const tooLong = () =>
    new AmalgamError(
      'TokenizerUnsupported',
      `The tokenizer of ${label} did not finish on this text and was stopped.`,
      'Its expressions take too long. Use the tokenizer.json of its base, or give token ids instead of text.',
    );
  const open = async () => {
    const thread = openThread(tooLong, signal);
    try {
      return { thread, vocabulary: await thread.ask((calls) => calls.open(files, label), deadlineMs) };
    } catch (thrown) {
      thread.close();
      throw thrown;
    }
  };
  let kept: ReturnType<typeof open> | undefined;
  /** A thread for a call; one that has failed is not used again. */
  const lease = () => {
    if (!stays) return open();
    kept ??= open();
    return kept;
  };
  const leave = ({ close }: Awaited<ReturnType<typeof open>>['thread']) => {
    if (!stays) close();
  };
  const failed = (thrown: unknown): never => {
    close();
    throw thrown;
  };
  const close = () => {
    void kept?.then(
      ({ thread }) => thread.stop(),
      () => undefined,
    );
    kept = undefined;
  };
  const { thread: first, vocabulary } = await lease();
  leave(first);
  const encodeAll = async (texts: readonly string[]) => {
    const { thread } = await lease();
    const encoded: number[][] = [];
    try {
      while (encoded.length < texts.length) {
        const { batch, characters } = nextBatch(texts, encoded.length, (text) => text.length);
        const patience = deadlineMs + characters * DEADLINE_MS_PER_CHARACTER;
        encoded.push(...(await thread.ask((calls) => calls.encodeAll(batch), patience).catch(failed)));
      }
      return encoded;
    } finally {
      leave(thread);
    }
  };
  return {
    ...vocabulary,
    encodeAll,
    encode: async (text) => (await encodeAll([text]))[0] ?? [],
    stream(before = []) {
      const opened = lease().then(async (one) => {
        await one.thread.ask((calls) => calls.follow(before), deadlineMs).catch(failed);
        return one;
      });
      // whoever pushes hears of it
      opened.catch(() => undefined);
      const ask = async (act: (calls: Calls) => Promise<string>) =>
        (await opened).thread.ask(act, deadlineMs).catch(failed);
      return {
        push: (id) => ask((calls) => calls.push(id)),
        end: () => ask((calls) => calls.end()),
        close: () =>
          void opened.then(
            ({ thread }) => leave(thread),
            () => undefined,
          ),
      };
    },
    close,
  };
}

/** Items from `begin` on, one at least. */
function nextBatch<T>(items: readonly T[], begin: number, lengthOf: (item: T) => number) {
  const batch: T[] = [];
  let characters = 0;
  for (const item of items.slice(begin, begin + BATCH.items)) {
    if (characters >= BATCH.characters) break;
    characters += lengthOf(item);
    batch.push(item);
  }
  return { batch, characters };
}

/** Why a text is no chat template, or is not known to be one; undefined where it is. */
export async function templateFault(template: string): Promise<AmalgamError | undefined> {
  const thread = openThread(templateTooLong, undefined);
  try {
    await thread.ask((calls) => calls.render({ template, tokens: {} }, [], true), DEADLINE_MS);
    return undefined;
  } catch (thrown) {
    if (thrown instanceof AmalgamError) return thrown;
    throw thrown;
  } finally {
    thread.close();
  }
}

function templateTooLong(): AmalgamError {
  return new AmalgamError(
    'TokenizerInvalid',
    'The chat template did not finish and was stopped.',
    'Write the text out as plain text instead.',
  );
}

/**
 * Conversations as a model reads them: each ends where the assistant begins, or whole.
 * @param deadlineMs tests shorten it
 * @returns null for one that the template refuses, where it takes another
 * @throws AmalgamError `TokenizerInvalid` when the template renders none, or does not end; `Canceled`
 */
export async function renderGuarded(
  chat: ChatTemplate,
  conversations: readonly Message[][],
  toAnswer: boolean,
  signal?: AbortSignal,
  deadlineMs = DEADLINE_MS,
): Promise<(string | null)[]> {
  const thread = openThread(templateTooLong, signal);
  const rendered: Rendered[] = [];
  try {
    while (rendered.length < conversations.length) {
      const { batch } = nextBatch(conversations, rendered.length, (messages) =>
        messages.reduce((sum, { content }) => sum + content.length, 0),
      );
      rendered.push(...(await thread.ask((calls) => calls.render(chat, batch, toAnswer), deadlineMs)));
    }
  } finally {
    thread.close();
  }
  const [first] = rendered;
  if (first && rendered.every((one) => 'refused' in one))
    throw notRendered((first as { refused: string }).refused);
  return rendered.map((one) => ('text' in one ? one.text : null));
}

/**
 * The value of the first pattern that matches, for each path where one does. Plain paths are looked up here, expressions
 * are matched in a thread.
 * @throws AmalgamError `AdapterUnsupported` naming a pattern that is no expression, or when they take too long; `Canceled`
 */
export async function matchModules(
  patterns: readonly ModulePattern[],
  paths: readonly string[],
  fileName: string,
  signal?: AbortSignal,
): Promise<ReadonlyMap<string, number>> {
  const unsupported = (what: string) =>
    new AmalgamError(
      'AdapterUnsupported',
      `${displayName(fileName)}: ${what}.`,
      'Write plain module paths into rank_pattern and alpha_pattern; the numbers stay the same.',
    );
  const tooLong = () => unsupported(`its ${patterns.length} module patterns take too long to be matched`);
  const plain = new PlainPaths();
  const others: { at: number; pattern: string }[] = [];
  for (const [at, { pattern }] of patterns.entries()) {
    if (isPlainPattern(pattern)) plain.add(pattern, at);
    else others.push({ at, pattern });
  }
  if (plain.size * paths.length > MOST_COMPARED) throw tooLong();
  const found = paths.map((path) => plain.find(path));
  if (others.length > 0) {
    const thread = openThread(tooLong, signal);
    const expressions = others.map(({ pattern }) => pattern);
    const answer = await thread
      .ask(async (calls) => calls.match(expressions, paths), PATTERN_DEADLINE_MS)
      .finally(thread.close);
    if ('invalid' in answer)
      throw unsupported(`the module pattern “${displayName(answer.invalid)}” cannot be read`);
    for (const [i, at] of answer.first.entries()) {
      if (at >= 0) found[i] = Math.min(found[i]!, others[at]!.at);
    }
  }
  return new Map(
    paths.flatMap((path, i): [string, number][] => {
      const match = patterns[found[i]!];
      return match ? [[path, match.value]] : [];
    }),
  );
}

/** A parquet file whose pages are unpacked elsewhere. */
interface GuardedParquet {
  columns: ParquetColumns;
  /**
   * Rows with some of their columns, a few thousand at a time. One that is too large has none.
   * @param characters of a text that is a column of its own; what is longer is cut there
   */
  rows(columns: readonly string[], characters: number): AsyncGenerator<Row[]>;
  close(): void;
}

/** @throws AmalgamError as `openParquet`, `DatasetInvalid` when a part takes too long, `Canceled`, what the source throws */
export async function openGuardedParquet(
  source: ByteSource,
  name: string,
  signal?: AbortSignal,
): Promise<GuardedParquet> {
  const tooLong = () =>
    new AmalgamError(
      'DatasetInvalid',
      `${name} did not come to an end of its next rows and was closed.`,
      'The file is damaged or made to be slow. Choose another one.',
    );
  const thread = openThread(tooLong, signal);
  let failed: unknown;
  const read = Comlink.proxy(async (begin: number, end: number) => {
    const resume = thread.pause();
    try {
      const bytes = await source.read(begin, end, signal);
      return Comlink.transfer(bytes, [bytes.buffer]);
    } catch (thrown) {
      failed = thrown;
      throw thrown;
    } finally {
      resume();
    }
  });
  const ask = async <T>(act: (calls: Calls) => Promise<T>): Promise<T> => {
    try {
      return await thread.ask(act, PAGE_DEADLINE_MS);
    } catch (thrown) {
      throw failed ?? thrown;
    }
  };
  try {
    const columns = await ask((calls) => calls.openParquet(name, source.byteLength, read));
    return {
      columns,
      async *rows(wanted, characters) {
        await ask((calls) => calls.selectRows(wanted, characters));
        for (;;) {
          const rows = await ask((calls) => calls.nextRows());
          if (rows.length === 0) return;
          yield rows;
        }
      },
      close: thread.close,
    };
  } catch (thrown) {
    thread.close();
    throw thrown;
  }
}

type Calls = Comlink.Remote<ForeignTextThread>;

/** @param tooLong the error of a call that takes longer than it may */
function openThread(tooLong: () => AmalgamError, signal: AbortSignal | undefined) {
  if (signal?.aborted) throw canceled();
  const port = start();
  const calls = Comlink.wrap<ForeignTextThread>(port.endpoint);
  let end: (thrown: AmalgamError) => void = () => {};
  const ended = new Promise<never>((_, reject) => {
    end = (thrown) => {
      close();
      reject(thrown);
    };
  });
  ended.catch(() => undefined);
  port.onError((message) =>
    end(
      new AmalgamError(
        'WorkerDied',
        `The thread that reads text stopped: ${message || 'it could not be started'}.`,
        'Try it again; if memory is short, close other programs.',
      ),
    ),
  );
  const stop = () => end(canceled());
  signal?.addEventListener('abort', stop, { once: true });
  const close = () => {
    signal?.removeEventListener('abort', stop);
    clearTimeout(timer);
    port.terminate();
  };
  let timer: ReturnType<typeof setTimeout> | undefined;
  let limit: number | undefined;
  const arm = () => {
    if (limit !== undefined) timer = setTimeout(() => end(tooLong()), limit);
  };
  return {
    /** What the thread answers. @throws AmalgamError its error, and `tooLong` after the deadline: the thread is gone then */
    async ask<T>(act: (calls: Calls) => Promise<T>, deadlineMs: number): Promise<T> {
      limit = deadlineMs;
      arm();
      return Promise.race([rooted(calls, act(calls)).catch(rethrow), ended]).finally(() => {
        limit = undefined;
        clearTimeout(timer);
      });
    },
    /** The thread waits for bytes, which is not its time. @returns to be called when it has them: its time begins anew */
    pause() {
      clearTimeout(timer);
      return arm;
    },
    close,
    /** Ends it, and what is asked of it. */
    stop,
  };
}
