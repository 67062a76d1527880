import { describe, expect, it } from 'vitest';
import { benchOptions } from './options';

describe('options of the benchmark', () => {
  it('has two rounds in Chromium by default, and no mergekit', () => {
    const { quick, repeat, browser, ...rest } = benchOptions([]);
    expect({ quick, repeat, browser }).toEqual({ quick: false, repeat: 2, browser: 'chromium' });
    expect(rest).toEqual({ case: '', gpu: false, threads: false });
  });

  it('takes a case, a program to compare with, and another browser', () => {
    const args = ['--case', 'ties', '--mergekit', './run.sh', '--browser', 'firefox', '--repeat', '0'];
    expect(benchOptions(args)).toMatchObject({
      case: 'ties',
      mergekit: './run.sh',
      browser: 'firefox',
      repeat: 0,
    });
  });

  it.each([
    [['--browser', 'netscape'], /--browser is netscape.*chromium, firefox/],
    [['--engine', 'auto'], /--engine is auto.*cpu, webgpu/],
    [['--repeat', 'often'], /--repeat is often/],
    [['--mergekti', 'run.sh'], /mergekti/],
  ])('refuses %s', (args, said) => {
    expect(() => benchOptions(args)).toThrow(said);
  });
});
