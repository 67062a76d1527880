/**
 * Chat templates and tokenizers are small programs from somebody else: a template may loop, an expression of a tokenizer
 * may backtrack for hours. They run in a thread that is ended when it takes too long; the session stays as it is.
 */
import * as Comlink from 'comlink';
import { AmalgamError } from '../errors';
import type { ChatTemplate } from '../formats/chat-template';
import { trustedWorkerUrl } from '../trusted-worker-url';
import { type ChatMessage, renderChat } from './chat-template';
import type { Answer, ForeignTextThread } from './foreign-text.worker';
import workerUrl from './foreign-text.worker.ts?worker&url';
import { createTokenizer, type Tokenizer, type TokenizerFiles } from './tokenizer';

/** What a template, and the reading of a large tokenizer, may take: real ones take milliseconds, and two seconds. */
const DEADLINE_MS = 30_000;
/** And for each character of a text: a slow machine does a hundred of them in a millisecond. */
const DEADLINE_MS_PER_CHARACTER = 0.5;

/** A tokenizer whose `encode` cannot hang this thread. */
export type GuardedTokenizer = Omit<Tokenizer, 'encode'> & {
  /** Ids as those of {@link Tokenizer}. @throws AmalgamError `TokenizerUnsupported` when it takes too long */
  encode(text: string): Promise<number[]>;
};

/** @param deadlineMs tests shorten it. @throws AmalgamError as {@link createTokenizer} */
export function guardedTokenizer(
  files: TokenizerFiles,
  label: string,
  deadlineMs = DEADLINE_MS,
): GuardedTokenizer {
  const made = createTokenizer(files, label);
  const tooLong = () =>
    new AmalgamError(
      'TokenizerUnsupported',
      `The tokenizer of ${label} did not come to an end with this text and was stopped.`,
      'Its expressions take too long. Use the tokenizer.json of its base, or give token ids instead of text.',
    );
  return {
    ...made,
    // one thread a text: texts are few and long, and a thread that stays would keep the vocabulary twice
    encode: (text) =>
      inThread(
        async (thread) => {
          const opened = await thread.open(files, label);
          return 'error' in opened ? opened : thread.encode(text);
        },
        async () => made.encode(text),
        deadlineMs + text.length * DEADLINE_MS_PER_CHARACTER,
        tooLong,
      ),
  };
}

/**
 * The prompt text of a conversation.
 * @param deadlineMs tests shorten it
 * @throws AmalgamError `TokenizerInvalid` when the template does not render, or does not end
 */
export function renderGuarded(
  chat: ChatTemplate,
  messages: ChatMessage[],
  deadlineMs = DEADLINE_MS,
): Promise<string> {
  return inThread(
    (thread) => thread.render(chat, messages),
    () => renderChat(chat.template, messages, chat.tokens),
    deadlineMs,
    () =>
      new AmalgamError(
        'TokenizerInvalid',
        'The chat template did not come to an end and was stopped.',
        'Write the prompt out as plain text instead.',
      ),
  );
}

/** @param here does the same where there are no such threads: in Node, where Ctrl+C ends a command */
async function inThread<T>(
  act: (thread: Comlink.Remote<ForeignTextThread>) => Promise<Answer<T>>,
  here: () => Promise<T>,
  deadlineMs: number,
  tooLong: () => AmalgamError,
): Promise<T> {
  if (typeof Worker === 'undefined') return here();
  const worker = new Worker(trustedWorkerUrl(workerUrl), { type: 'module', name: 'amalgam-foreign-text' });
  let timer: ReturnType<typeof setTimeout> | undefined;
  try {
    const answer = await Promise.race([
      act(Comlink.wrap<ForeignTextThread>(worker)),
      new Promise<never>((_, reject) => {
        timer = setTimeout(() => reject(tooLong()), deadlineMs);
        worker.addEventListener('error', ({ message }) =>
          reject(
            new AmalgamError(
              'WorkerDied',
              `The thread that reads text stopped: ${message || 'it could not be started'}.`,
              'Try it again; if memory is short, close other tabs.',
            ),
          ),
        );
      }),
    ]);
    if ('value' in answer) return answer.value;
    throw new AmalgamError(answer.error.code, answer.error.message, answer.error.hint);
  } finally {
    clearTimeout(timer);
    worker.terminate();
  }
}
