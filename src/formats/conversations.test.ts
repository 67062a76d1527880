import { describe, expect, it } from 'vitest';
import {
  columnsTitle,
  conversationColumns,
  conversationColumnsOf,
  conversationLine,
  conversationOf,
  isConversations,
  parseConversations,
} from './conversations';

const hello = [
  { role: 'user', content: 'Hello' },
  { role: 'assistant', content: 'Hi' },
];
const read = (row: Record<string, unknown>) => {
  const columns = conversationColumnsOf(row);
  return columns && { title: columnsTitle(columns), messages: conversationOf(row, columns) };
};

describe('conversations in rows', () => {
  it.each<[string, Record<string, unknown>, string]>([
    ['messages', { id: 'x', messages: hello }, 'messages'],
    [
      'ShareGPT',
      {
        conversations: [
          { from: 'human', value: 'Hello' },
          { from: 'gpt', value: 'Hi' },
        ],
      },
      'conversations',
    ],
    [
      'lists of a prompt and its completion',
      { prompt: [hello[0]], completion: [hello[1]] },
      'prompt → completion',
    ],
    [
      'parts of text',
      { messages: [{ ...hello[0], content: [{ type: 'text', text: 'Hello' }] }, hello[1]] },
      'messages',
    ],
    ['Alpaca', { instruction: 'Hello', input: '', output: 'Hi' }, 'instruction, input → output'],
    ['question and answer', { question: 'Hello', answer: 'Hi' }, 'question → answer'],
    ['input and output', { input: 'Hello', output: 'Hi' }, 'input → output'],
    ['any list of messages', { dialog: hello, text_id: 3 }, 'dialog'],
  ])('%s', (_, row, title) => {
    expect(read(row)).toEqual({ title, messages: hello });
  });

  it('with a context and a system message', () => {
    const row = { system_prompt: 'Be brief.', instruction: 'Sum up.', context: 'Rain.', response: 'Wet.' };
    expect(read(row)?.messages).toEqual([
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Sum up.\n\nRain.' },
      { role: 'assistant', content: 'Wet.' },
    ]);
  });

  it('are not where there is text alone, or lists of something else', () => {
    expect(conversationColumnsOf({ text: 'x', answers: ['a'] })).toBeUndefined();
    expect(conversationColumns(['title', 'text'], [])).toBeUndefined();
  });

  it('with anything but text are left out', () => {
    const columns = conversationColumnsOf({ messages: hello })!;
    expect(conversationOf({ messages: [{ role: 'assistant', content: null }] }, columns)).toBeUndefined();
    expect(conversationOf({ messages: [] }, columns)).toBeUndefined();
    const picture = [{ role: 'user', content: [{ type: 'image', url: 'x' }] }];
    expect(conversationOf({ messages: picture }, columns)).toBeUndefined();
  });
});

describe('conversations as a text', () => {
  it('are one a line, and read back', () => {
    const text = [hello, hello].map(conversationLine).join('\n');
    expect(isConversations(text)).toBe(true);
    expect(parseConversations(text)).toEqual([hello, hello]);
    expect(isConversations('[1, 2]')).toBe(false);
  });

  it('name a line that is none', () => {
    expect(() => parseConversations(`${conversationLine(hello)}\n{"a": 1}`)).toThrow(/Line 2/);
  });
});
