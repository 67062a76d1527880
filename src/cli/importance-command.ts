/** The command line of `importance`. */
import type { EngineChoice } from '../compute/engine';
import type { Recipe } from '../formats/recipe';
import { engineOption, hubOption, numberOption, parseOne, usage } from './arguments';

export interface ImportanceCommand {
  verb: 'importance';
  /** Its base, the model, and what it reads. */
  recipe: Recipe;
  out: string;
  hub?: string;
  engine: EngineChoice;
}

export const IMPORTANCE_USAGE = `  importance <model> --base MODEL --out DIR [--text FILE] [--density 0.2] [--score wanda|obs|sparsegpt]
             [--scope tensor|row|block] [--compensation off|cg|sweep] [--windows 128] [--window 256] [--seed 0]
             [--engine auto|webgpu|cpu] [--hub URL]
      Which changes of a model to its base matter, by what it makes of its inputs: masks.safetensors (one bit per
      weight, or the compensated changes) and importance.json. Without --text the model writes its own.
`;

/** @throws Usage */
export function parseImportance(args: string[]): ImportanceCommand {
  const { subject: model, options } = parseOne('importance', 'model', args, {
    base: { type: 'string' },
    out: { type: 'string' },
    text: { type: 'string' },
    density: { type: 'string' },
    score: { type: 'string' },
    scope: { type: 'string' },
    compensation: { type: 'string' },
    windows: { type: 'string' },
    window: { type: 'string' },
    seed: { type: 'string' },
    engine: { type: 'string' },
    hub: { type: 'string' },
  });
  const { base, out, text, engine = 'auto', score, scope, compensation = 'off' } = options;
  if (typeof base !== 'string') throw usage('importance needs --base MODEL, what the model was made from.');
  if (typeof out !== 'string' || out === '') throw usage('importance needs --out DIR, the folder to write.');
  const words = { score, scope, compensation };
  const chosen = Object.entries(words).filter((e): e is [string, string] => typeof e[1] === 'string');
  return {
    verb: 'importance',
    out,
    engine: engineOption(engine),
    ...hubOption(options.hub),
    recipe: {
      mergeMethod: 'task_arithmetic',
      baseModel: base,
      models: [
        {
          model,
          parameters: {
            weight: 1,
            density: numberOption('density', options.density, 0.2, 0, false),
            calibration: typeof text === 'string' ? text : 'self',
          },
        },
      ],
      parameters: {
        selector: 'importance',
        ...Object.fromEntries(chosen),
        calibration_windows: numberOption('windows', options.windows, 128, 1, true),
        calibration_window: numberOption('window', options.window, 256, 8, true),
      },
      amalgam: { seed: numberOption('seed', options.seed, 0, 0, true) },
    },
  };
}
