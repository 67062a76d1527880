import { describe, expect, test } from 'vitest';
import { parseCommand } from '../command';
import { collapseVerb } from './collapse';

const parse = (...args: string[]) => collapseVerb.parse(args);

describe('collapse', () => {
  test('greedily by default, with its settings', () => {
    expect(parse('m', '--out', 'o', '--text', 'a.txt', '--text', 'b.txt', '--per-line')).toEqual({
      calibration: { textFiles: ['a.txt', 'b.txt'], perLine: true, window: 256 },
      task: {
        kind: 'collapse',
        out: 'o',
        request: {
          model: 'm',
          engine: 'auto',
          planner: { kind: 'laco', block: 3, lowest: 0, interval: 2 },
          variant: 'rdsc',
          parts: 'linear',
        },
      },
    });
    const greedy = parse(
      ...['m', '--out=o', '--tokens=i.json', '--block=2', '--lowest=1', '--highest=5', '--interval=1'],
      ...['--threshold=-0.5', '--ratio=0.25', '--variant=replace-last', '--parts=full', '--no-perplexity'],
    );
    expect(greedy).toMatchObject({
      calibration: { tokensFile: 'i.json', window: 256 },
      task: {
        evaluation: null,
        request: {
          planner: {
            kind: 'laco',
            block: 2,
            lowest: 1,
            highest: 5,
            interval: 1,
            threshold: -0.5,
            target: { ratio: 0.25 },
          },
          variant: 'replace-last',
          parts: 'full',
        },
      },
    });
  });

  test('by influence, by angle, by hand; layers are dropped by default', () => {
    const planner = (...args: string[]) => {
      const command = parse('m', '--out', 'o', '--text', 'a', ...args);
      if (command.task.kind !== 'collapse') throw new Error('another verb');
      expect(command.task.request.variant).toBe('drop');
      return command.task.request.planner;
    };
    expect(planner('--planner', 'influence', '--remove', '4')).toEqual({
      kind: 'influence',
      target: { remove: 4 },
    });
    expect(planner('--planner', 'angular', '--threshold', '0.2', '--all-tokens')).toEqual({
      kind: 'angular',
      target: { threshold: 0.2 },
      tokens: 'all',
    });
    expect(planner('--layers', '3,7-9, 12')).toEqual({ kind: 'manual', remove: [3, 7, 8, 9, 12] });
  });

  test('measures', () => {
    expect(parse('m', '--measure', '--text', 'a', '--report', 'r.json')).toMatchObject({
      report: 'r.json',
      task: { kind: 'measure', request: { model: 'm', engine: 'auto' } },
    });
    expect(parse('m', '--measure', '--text', 'a', '--block', '4')).toMatchObject({
      task: { request: { curve: { block: 4, variant: 'rdsc', parts: 'linear' } } },
    });
  });

  test.each([
    [['m'], /--out DIR/],
    [['m', '--out', 'o'], /--text FILE or --tokens IDS.json/],
    [['m', '--out', 'o', '--text', 'a', '--tokens', 'b'], /not both/],
    [['m', '--out', 'o', '--text', 'a', '--planner', 'luck'], /--planner is luck; it is one of laco/],
    [['m', '--out', 'o', '--text', 'a', '--planner', 'influence'], /exactly one of --remove, --ratio/],
    [
      ['m', '--out', 'o', '--text', 'a', '--planner', 'angular', '--remove', '1', '--threshold', '1'],
      /exactly one/,
    ],
    [['m', '--out', 'o', '--text', 'a', '--remove', '1', '--ratio', '0.1'], /either --remove or --ratio/],
    [['m', '--out', 'o', '--layers', '9-7'], /--layers is 9-7/],
    [['m', '--out', 'o', '--layers', 'x'], /--layers is x/],
    [['m', '--out', 'o', '--layers', '1', '--planner', 'laco'], /--planner does not go with it/],
    [['m', '--out', 'o', '--text', 'a', '--block', '1'], /--block is 1/],
    [['m', '--measure'], /--measure needs --text/],
    [['m', '--measure', '--text', 'a', '--out', 'o'], /--out does not go with it/],
    [['m', '--out', 'o', '--layers', '1', '--eval-text', 'a', '--eval-tokens', 'b'], /not both/],
  ])('%j is refused in words', (args, words) => {
    expect(() => parse(...args)).toThrow(words);
  });

  test('extract-lora takes a text to measure on', () => {
    expect(
      parseCommand(['extract-lora', 'a', 'b', '--out', 'o', '--rank', '8', '--eval-text', 't.txt']),
    ).toMatchObject({ evaluation: { textFile: 't.txt' } });
  });
});
