import { expect, test } from 'vitest';
import { textOfFile } from './conversations';

test('a .jsonl file is the text field of its lines; anything else is text', () => {
  expect(textOfFile('a.jsonl', '{"text": "one"}\r\n\n{"id": 3, "text": "two"}\n')).toBe('one\n\ntwo');
  expect(textOfFile('a.txt', '\uFEFF{"text": "one"}')).toBe('{"text": "one"}');
});

test('rows as Python writes them: NaN beside the text is none', () => {
  expect(textOfFile('a.jsonl', '{"text": "NaN", "score": NaN, "least": -Infinity}')).toBe('NaN');
});

test('a line without text names itself, an empty file says so', () => {
  expect(() => textOfFile('a.jsonl', '{"text": "one"}\n\n{"body": "two"}')).toThrow(/a\.jsonl, line 3/);
  expect(() => textOfFile('a.jsonl', '{"text": "one"}\nnot json')).toThrow(/line 2/);
  expect(() => textOfFile('a.jsonl', '{"text": 7}')).toThrow(/line 1/);
  expect(() => textOfFile('a.txt', ' \n')).toThrow(/no text/);
});

test('conversations of a .jsonl file stay apart, one a line', () => {
  const alpaca = '{"instruction": "Hello", "output": "Hi"}';
  const messages = '[{"role":"user","content":"Hello"},{"role":"assistant","content":"Hi"}]';
  expect(textOfFile('a.jsonl', `${alpaca}\n${alpaca}\n`)).toBe(`${messages}\n${messages}`);
  expect(textOfFile('a.jsonl', `{"id": 1, "messages": ${messages}}`)).toBe(messages);
  expect(textOfFile('a.jsonl', `{"text": "one", "messages": ${messages}}`)).toBe('one');
  expect(() => textOfFile('a.jsonl', `${alpaca}\n{"instruction": "Hello"}`)).toThrow(
    /line 2.*instruction → output/,
  );
});
