/** What somebody else's files say — chat templates, tokenizers, module patterns, parquet —, run where it can be ended (foreign-text.ts). */
import { type ErrorReport, errorReport } from '../errors';
import type { ChatTemplate } from '../formats/chat-template';
import type { Message } from '../formats/conversations';
import { renderChats } from './chat-template';
import { firstMatches } from './module-pattern';
import type { ParquetFile, ReadBytes } from './parquet';
import { createTokenizer, type Tokenizer, type TokenizerFiles, type TokenStream } from './tokenizer';

export type Answer<T> = { value: T } | { error: ErrorReport };

/** The functions of one thread: it holds one tokenizer or file, and decodes one text at a time. */
export function foreignTextThread() {
  let tokenizer: Tokenizer | undefined;
  let stream: TokenStream | undefined;
  let parquet: ParquetFile | undefined;
  return {
    render: (chat: ChatTemplate, conversations: Message[][], toAnswer: boolean) =>
      answer(() => renderChats(chat.template, conversations, chat.tokens, toAnswer)),
    open: (files: TokenizerFiles, label: string) =>
      answer(() => {
        tokenizer = createTokenizer(files, label);
        const { size, ownSize, prefix, suffix, mask, prefixToken, maxLength } = tokenizer;
        return { size, ownSize, prefix, suffix, mask, prefixToken, maxLength };
      }),
    encodeAll: (texts: readonly string[]) => answer(() => texts.map((text) => tokenizer!.encode(text))),
    follow: (before: readonly number[]) =>
      answer(() => {
        stream = tokenizer!.stream(before);
      }),
    push: (id: number) => answer(() => stream!.push(id)),
    end: () => answer(() => stream!.end()),
    match: (patterns: readonly string[], paths: readonly string[]) =>
      answer(() => firstMatches(patterns, paths)),
    openParquet: (name: string, byteLength: number, read: ReadBytes) =>
      answer(async () => {
        const { openParquet } = await import('./parquet');
        parquet = await openParquet(name, byteLength, read);
        return parquet.columns;
      }),
    selectRows: (columns: readonly string[], characters: number) =>
      answer(() => parquet!.select(columns, characters)),
    nextRows: () => answer(() => parquet!.next()),
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
