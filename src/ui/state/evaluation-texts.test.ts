import { expect, test } from 'vitest';
import { conversationLine } from '../../formats/conversations';
import { QUICK_CHARACTERS, scoredText } from './evaluation-state';

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

test('of conversations whole ones are scored', () => {
  const line = conversationLine([{ role: 'user', content: 'word '.repeat(100) }]);
  const quick = scoredText(Array(20).fill(line).join('\n'), 'quick');
  expect(quick).toBe(`${line}\n${line}`);
  const long = conversationLine([{ role: 'user', content: 'word '.repeat(1000) }]);
  expect(scoredText(`${long}\n${line}`, 'quick')).toBe(long);
});
