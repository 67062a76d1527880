import { describe, expect, test } from 'vitest';
import { figureWords, verb } from './verb';

const parse = (...args: string[]) => verb.parse(args);

describe('moe', () => {
  test('its recipe, where it goes, and its form', () => {
    expect(parse('e.yml', '--out', 'o', '--gguf', 'Q8_0', '--gguf-only', '--resume')).toMatchObject({
      subjects: ['e.yml'],
      options: { out: 'o', gguf: 'Q8_0', ggufOnly: true, resume: true, plan: false, engine: 'auto' },
    });
    expect(parse('e.yml', '--plan').options).not.toHaveProperty('out');
  });

  test.each([
    [['e.yml'], /--out DIR/],
    [['e.yml', '--plan', '--out', 'o'], /writes nothing/],
    [['e.yml', '--plan', '--resume'], /writes nothing/],
    [['e.yml', '--recipe', 'x', '--out', 'o'], /--recipe/],
  ])('%j is refused in words', (args, words) => {
    expect(() => parse(...args)).toThrow(words);
  });

  test('its figures in words', () => {
    const parameters = { all: 46.7e9, active: 12.9e9 };
    expect(
      figureWords({ title: 'Mixtral', experts: 8, expertsPerToken: 2, parameters }).replace(/\s/g, ' '),
    ).toBe('Mixtral of 8 experts, 2 a token: 46.7 B parameters, 12.9 B of them active');
  });
});
