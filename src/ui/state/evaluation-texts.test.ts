import { expect, test } from 'vitest';
import { QUICK_CHARACTERS, scoredText, textOfFile } from './evaluation-texts';

test('quick scores the beginning up to a whole word; short and whole texts are scored as they stand', () => {
  const text = 'a lamp by the hinge '.repeat(500);
  const quick = scoredText(text, 'quick');
  expect(text.startsWith(quick)).toBe(true);
  expect(quick.length).toBeLessThanOrEqual(QUICK_CHARACTERS);
  expect(quick.length).toBeGreaterThan(QUICK_CHARACTERS - 6);
  expect(text[quick.length]).toBe(' ');
  expect(scoredText(text, 'full')).toBe(text);
  expect(scoredText('short', 'quick')).toBe('short');
});

test('a word that ends exactly at the limit is kept', () => {
  const word = `${'x'.repeat(QUICK_CHARACTERS - 3)} yz`;
  expect(scoredText(`${word} and more`, 'quick')).toBe(word);
});

test('a text without spaces is cut between characters', () => {
  const quick = scoredText('𝄞'.repeat(2000), 'quick');
  expect(quick.length).toBe(QUICK_CHARACTERS);
  expect(quick.isWellFormed()).toBe(true);
  expect(scoredText(`x${'𝄞'.repeat(2000)}`, 'quick').isWellFormed()).toBe(true);
});

test('a .jsonl file is the text field of its lines; anything else is text', () => {
  expect(textOfFile('a.jsonl', '{"text": "one"}\r\n\n{"id": 3, "text": "two"}\n')).toBe('one\n\ntwo');
  expect(textOfFile('a.txt', '\uFEFF{"text": "one"}')).toBe('{"text": "one"}');
});

test('a line without text names itself, an empty file says so', () => {
  expect(() => textOfFile('a.jsonl', '{"text": "one"}\n\n{"body": "two"}')).toThrow(/a\.jsonl, line 3/);
  expect(() => textOfFile('a.jsonl', '{"text": "one"}\nnot json')).toThrow(/line 2/);
  expect(() => textOfFile('a.jsonl', '{"text": 7}')).toThrow(/line 1/);
  expect(() => textOfFile('a.txt', ' \n')).toThrow(/no text/);
});
