/** What somebody else's files say — chat templates, tokenizers, module patterns, parquet —, run where it can be ended (foreign-text.ts). */
import type { ChatTemplate } from '../formats/chat-template';
import type { Message } from '../formats/conversations';
import { reporting } from '../platform';
import { renderChats } from './chat-template';
import { firstMatches } from './module-pattern';
import type { ParquetFile, ReadBytes } from './parquet';
import { createTokenizer, type Tokenizer, type TokenizerFiles, type TokenStream } from './tokenizer';

/** The functions of one thread: it holds one tokenizer or file, and decodes one text at a time. */
export function foreignTextThread() {
  let tokenizer: Tokenizer | undefined;
  let stream: TokenStream | undefined;
  let parquet: ParquetFile | undefined;
  return reporting({
    render: (chat: ChatTemplate, conversations: Message[][], toAnswer: boolean) =>
      renderChats(chat.template, conversations, chat.tokens, toAnswer),
    open(files: TokenizerFiles, label: string) {
      tokenizer = createTokenizer(files, label);
      const { size, ownSize, prefix, suffix, pair, mask, prefixToken, maxLength } = tokenizer;
      return { size, ownSize, prefix, suffix, pair, mask, prefixToken, maxLength };
    },
    encodeAll: (texts: readonly string[]) => texts.map((text) => tokenizer!.encode(text)),
    follow(before: readonly number[]) {
      stream = tokenizer!.stream(before);
    },
    push: (id: number) => stream!.push(id),
    end: () => stream!.end(),
    match: (patterns: readonly string[], paths: readonly string[]) => firstMatches(patterns, paths),
    async openParquet(name: string, byteLength: number, read: ReadBytes) {
      const { openParquet } = await import('./parquet');
      parquet = await openParquet(name, byteLength, read);
      return parquet.columns;
    },
    selectRows: (columns: readonly string[], characters: number) => parquet!.select(columns, characters),
    nextRows: () => parquet!.next(),
  });
}

export type ForeignTextThread = ReturnType<typeof foreignTextThread>;
