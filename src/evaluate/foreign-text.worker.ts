/** Runs what a model's files say about text — chat templates, tokenizers — where it can be ended (foreign-text.ts). */
import * as Comlink from 'comlink';
import { type ErrorFacts, errorFacts } from '../errors';
import type { ChatTemplate } from '../formats/chat-template';
import { type ChatMessage, renderChat } from './chat-template';
import { createTokenizer, type Tokenizer, type TokenizerFiles } from './tokenizer';

export type Answer<T> = { value: T } | { error: ErrorFacts };

async function answer<T>(act: () => T | Promise<T>): Promise<Answer<T>> {
  try {
    return { value: await act() };
  } catch (thrown) {
    return { error: errorFacts(thrown) };
  }
}

let tokenizer: Tokenizer | undefined;

const thread = {
  render: (chat: ChatTemplate, messages: ChatMessage[]) =>
    answer(() => renderChat(chat.template, messages, chat.tokens)),
  open: (files: TokenizerFiles, label: string) =>
    answer(() => {
      tokenizer = createTokenizer(files, label);
    }),
  encode: (text: string) => answer(() => tokenizer!.encode(text)),
};

export type ForeignTextThread = typeof thread;

Comlink.expose(thread);
