/** Options of `npm run bench`. */
import { parseArgs } from 'node:util';
import type { BackendKind } from '../../src/reports/backend';

export interface BenchOptions {
  quick: boolean;
  /** Text that the name of a row has, with where it takes its models from. */
  case: string;
  engine?: BackendKind;
  /** Rounds of each case; 0 only brings the models into the browser's storage. */
  repeat: number;
  /** The command alone, on the machine's own graphics device in place of the software adapter. */
  gpu: boolean;
  threads: boolean;
  browser: 'chromium' | 'firefox';
  /** A program that merges: called with a recipe in mergekit's YAML and the output's folder. */
  mergekit?: string;
}

/** Options of a command line. @throws Error for an unknown option or value */
export function benchOptions(args: string[]): BenchOptions {
  const { values } = parseArgs({
    args,
    options: {
      quick: { type: 'boolean', default: false },
      case: { type: 'string', default: '' },
      engine: { type: 'string' },
      repeat: { type: 'string', default: '2' },
      gpu: { type: 'boolean', default: false },
      threads: { type: 'boolean', default: false },
      browser: { type: 'string', default: 'chromium' },
      mergekit: { type: 'string' },
    },
  });
  const { engine, browser, repeat, mergekit, ...rest } = values;
  if (!/^\d{1,3}$/.test(repeat)) throw new Error(`--repeat is ${repeat}; it is a number of rounds.`);
  return {
    ...rest,
    repeat: Number(repeat),
    browser: oneOf('browser', browser, ['chromium', 'firefox']),
    ...(engine === undefined ? {} : { engine: oneOf('engine', engine, ['cpu', 'webgpu']) }),
    ...(mergekit === undefined ? {} : { mergekit }),
  };
}

function oneOf<T extends string>(option: string, value: string, known: readonly T[]): T {
  const found = known.find((name) => name === value);
  if (found === undefined) throw new Error(`--${option} is ${value}; it is one of ${known.join(', ')}.`);
  return found;
}
