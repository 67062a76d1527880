/** What somebody else's files say about text — chat templates, tokenizers, tasks —, run where it can be ended (foreign-text.ts). */
import { type ErrorReport, errorReport } from '../errors';
import type { ChatTemplate } from '../formats/chat-template';
import type { Message } from '../formats/conversations';
import type { Task } from '../tasks/task-file';
import { buildItems, type ItemOptions, type TaskRows } from '../tasks/task-items';
import { renderChats } from './chat-template';
import { createTokenizer, type Tokenizer, type TokenizerFiles, type TokenStream } from './tokenizer';

export type Answer<T> = { value: T } | { error: ErrorReport };

/** The functions of one thread: it holds one tokenizer, and decodes one text at a time. */
export function foreignTextThread() {
  let tokenizer: Tokenizer | undefined;
  let stream: TokenStream | undefined;
  return {
    render: (chat: ChatTemplate, conversations: Message[][], toAnswer: boolean) =>
      answer(() => renderChats(chat.template, conversations, chat.tokens, toAnswer)),
    open: (files: TokenizerFiles, label: string) =>
      answer(() => {
        tokenizer = createTokenizer(files, label);
        stream = tokenizer.stream();
        const { size, prefix, suffix, mask, prefixToken, maxLength } = tokenizer;
        return { size, prefix, suffix, mask, prefixToken, maxLength };
      }),
    items: (task: Task, rows: TaskRows, options: ItemOptions) =>
      answer(() => buildItems(task, rows, options)),
    encodeAll: (texts: readonly string[]) => answer(() => texts.map((text) => tokenizer!.encode(text))),
    push: (id: number) => answer(() => stream!.push(id)),
    end: () => answer(() => stream!.end()),
  };
}

export type ForeignTextThread = ReturnType<typeof foreignTextThread>;

async function answer<T>(act: () => T | Promise<T>): Promise<Answer<T>> {
  try {
    return { value: await act() };
  } catch (thrown) {
    return { error: errorReport(thrown) };
  }
}
