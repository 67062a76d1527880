import { describe, expect, test } from 'vitest';
import { verb } from './verb';

const parse = (...args: string[]) => verb.parse(args);

describe('collapse', () => {
  test('greedily by default; every option is a flag', () => {
    expect(parse('m', '--out', 'o', '--text', 'a.txt', '--text', 'b.txt', '--per-line')).toMatchObject({
      subjects: ['m'],
      options: {
        ...{ out: 'o', engine: 'auto' },
        ...{ text: ['a.txt', 'b.txt'], perLine: true, window: 256, perplexity: true },
        ...{ planner: 'laco', block: 3, lowest: 0, interval: 2, similarity: 0.75 },
      },
    });
    const greedy = parse(
      ...['m', '--out=o', '--tokens=i.json', '--block=2', '--lowest=1', '--highest=5', '--interval=1'],
      ...['--similarity=-0.5', '--ratio=0.25', '--variant=drop', '--no-perplexity'],
    );
    expect(greedy.options).toMatchObject({
      ...{ tokens: 'i.json', block: 2, lowest: 1, highest: 5, interval: 1, similarity: -0.5, ratio: 0.25 },
      ...{ variant: 'drop', perplexity: false },
    });
  });

  test('measures, and writes nothing then', () => {
    const command = parse('m', '--measure', '--text', 'a', '--block', '4', '--report', 'r.json');
    expect(command.options).toMatchObject({ report: 'r.json', measure: true, block: 4 });
    expect(command.options).not.toHaveProperty('out');
    expect([...command.given]).toContain('block');
  });

  test.each([
    [['m', '--text', 'a'], /--out DIR/],
    [['m', '--out', 'o'], /--text FILE or --tokens IDS.json/],
    [['m', '--out', 'o', '--text', 'a', '--tokens', 'b'], /not both/],
    [['m', '--out', 'o', '--text', 'a', '--planner', 'luck'], /--planner is luck; it is one of influence/],
    [['m', '--out', 'o', '--text', 'a', '--planner', 'influence'], /how much is to go/],
    [
      ['m', '--out', 'o', '--text', 'a', '--planner', 'angular', '--remove', '1', '--threshold', '1'],
      /at most one of --remove, --ratio and --threshold/,
    ],
    [['m', '--out', 'o', '--text', 'a', '--threshold', '0.1'], /for the planners influence and angular/],
    [['m', '--out', 'o', '--text', 'a', '--block', '1'], /--block is 1/],
    [
      ['m', '--out', 'o', '--text', 'a', '--planner', 'experts', '--threshold', '1'],
      /threshold is not for experts/,
    ],
    [
      ['m', '--out', 'o', '--text', 'a', '--planner', 'experts', '--remove', '1', '--variant', 'rdsc'],
      /rdsc is not for the planner experts/,
    ],
    [['m', '--out', 'o', '--text', 'a', '--variant', 'mean'], /mean is not for the planner laco/],
    [['m', '--measure'], /--text FILE or --tokens/],
    [['m', '--measure', '--text', 'a', '--remove', '1'], /--remove does not go with it/],
  ])('%j is refused in words', (args, words) => {
    expect(() => parse(...args)).toThrow(words);
  });
});
