/** The command line of `importance`. */

import type { Recipe } from '../formats/recipe';
import type { BackendChoice } from '../reports/backend';
import { engineOption, numberOption, parseOne, usage, whereOptions } from './arguments';
import { inputOption } from './input-files';
import { isTokensFile } from './recipe-texts';

export interface ImportanceCommand {
  verb: 'importance';
  /** Its base, the model, and what it reads. */
  recipe: Recipe;
  /** Token ids to read in place of a text, cut into windows by {@link tokenWindows}. */
  tokensFile?: string;
  windows?: number;
  window?: number;
  out: string;
  hub?: string;
  cache?: string;
  engine: BackendChoice;
}

export const IMPORTANCE_USAGE = `  importance <model> --base MODEL --out DIR [--text FILE | --tokens IDS.json]
             [--density 0.2] [--score wanda|obs|sparsegpt] [--scope tensor|row|block] [--compensation off|cg|sweep]
             [--windows 128] [--window 256] [--seed 0] [--engine auto|webgpu|cpu] [--hub URL] [--cache DIR]
      Which changes of a model to its base matter, by what it makes of its inputs: masks.safetensors (one bit per
      weight, or the compensated changes) and importance.json. Without --text and --tokens the model writes its own
      text; of --tokens as many windows are read as there are, unless --windows says how many.
`;

/** @throws Usage */
export function parseImportance(args: string[]): ImportanceCommand {
  const { subject: model, options } = parseOne('importance', 'model', args, {
    base: { type: 'string' },
    out: { type: 'string' },
    text: { type: 'string' },
    tokens: { type: 'string' },
    density: { type: 'string' },
    score: { type: 'string' },
    scope: { type: 'string' },
    compensation: { type: 'string' },
    windows: { type: 'string' },
    window: { type: 'string' },
    seed: { type: 'string' },
    engine: { type: 'string' },
    hub: { type: 'string' },
    cache: { type: 'string' },
  });
  const { base, out, engine = 'auto', score, scope, compensation = 'off' } = options;
  if (typeof base !== 'string') throw usage('importance needs --base MODEL, what the model was made from.');
  if (typeof out !== 'string' || out === '') throw usage('importance needs --out DIR, the folder to write.');
  const input = inputOption('importance', options, '');
  const tokensFile = input && 'tokensFile' in input ? input.tokensFile : undefined;
  if (tokensFile !== undefined && !isTokensFile(tokensFile)) {
    throw usage(`--tokens is ${tokensFile}; it is a file of token ids whose name ends in .json.`);
  }
  const windows = numberOption('windows', options.windows, 128, 1, true);
  const window = numberOption('window', options.window, 256, 8, true);
  const words = { score, scope, compensation };
  const chosen = Object.entries(words).filter((e): e is [string, string] => typeof e[1] === 'string');
  return {
    verb: 'importance',
    out,
    engine: engineOption(engine),
    ...whereOptions(options),
    ...(tokensFile !== undefined && {
      tokensFile,
      ...(options.windows !== undefined && { windows }),
      ...(options.window !== undefined && { window }),
    }),
    recipe: {
      mergeMethod: 'task_arithmetic',
      baseModel: base,
      models: [
        {
          model,
          parameters: {
            weight: 1,
            density: numberOption('density', options.density, 0.2, 0, false),
            calibration:
              input === undefined ? 'self' : 'textFile' in input ? input.textFile : input.tokensFile,
          },
        },
      ],
      parameters: {
        selector: 'importance',
        ...Object.fromEntries(chosen),
        calibration_windows: windows,
        calibration_window: window,
      },
      amalgam: { seed: numberOption('seed', options.seed, 0, 0, true) },
    },
  };
}

/**
 * How many windows of which length are read of `count` token ids: as asked, else windows of 256 (of all where there are
 * fewer), as many as there are without overlap.
 */
export function tokenWindows(
  count: number,
  { windows, window }: Pick<ImportanceCommand, 'windows' | 'window'>,
): { windows: number; window: number } {
  const length = window ?? Math.min(256, count);
  return { windows: windows ?? Math.max(1, Math.floor(count / length)), window: length };
}
