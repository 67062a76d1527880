import { resolve } from 'node:path';
import { displayName } from '../../formats/names';
import { formatBytes, formatCount, formatCounted, formatSeconds } from '../../formats/quantity';
import type { Recipe } from '../../formats/recipe';
import type { BackendChoice } from '../../reports/backend';
import type { ImportanceReport } from '../../reports/importance';
import type { Options } from '../../reports/option';
import { engineOptions, outOf, outOption, parseOne, runOf, usage, usageOf, type Verb } from '../arguments';
import { inputOf, parseTokens, readTextFile } from '../input-files';
import { openJob, plannedJob, type Where } from '../job';
import { openOutput, requireCommitted } from '../output-folder';
import { withProgress } from '../print';
import { isTokensFile } from '../recipe-texts';

interface ImportanceCommand extends Where {
  /** Its base, the model, and what it reads. */
  recipe: Recipe;
  /** Token ids to read in place of a text, cut into windows by {@link tokenWindows}. */
  tokensFile?: string;
  windows?: number;
  window?: number;
  out: string;
  engine: BackendChoice;
}

/** Those of the methods that select by importance, as the recipe calls them. */
const importanceOptions = {
  density: { kind: 'number', help: 'The share of the changes that is kept.', default: 0.2, min: 0 },
  score: {
    kind: 'text',
    argument: 'wanda|obs|sparsegpt',
    help: 'How important a weight is: wanda where nothing is said.',
  },
  scope: {
    kind: 'text',
    argument: 'tensor|row|block',
    help: 'Where weights compete: in a tensor, a row, or a block of columns.',
  },
  compensation: {
    kind: 'text',
    argument: 'off|cg',
    help: 'How kept changes make up for the others: off where nothing is said.',
  },
  windows: { kind: 'integer', help: 'Windows of text that are read.', default: 128, min: 1 },
  window: { kind: 'integer', help: 'Tokens of each window.', default: 256, min: 8 },
  seed: { kind: 'integer', help: 'Of the text that the model writes.', default: 0, min: 0 },
} as const satisfies Options;

const importanceInputs = {
  base: { kind: 'text', argument: 'MODEL', help: 'What the model was made from.' },
  text: { kind: 'text', argument: 'FILE', help: 'A text of the kind the model is for.' },
  tokens: { kind: 'text', argument: 'IDS.json', help: 'A text as token ids.' },
} as const satisfies Options;

const measuring = { ...outOption, ...importanceInputs, ...importanceOptions, ...engineOptions };

export const importanceVerb: Verb<ImportanceCommand> = {
  name: 'importance',
  usage: `  importance <model> --base MODEL --out DIR [--text FILE | --tokens IDS.json]
             ${usageOf(importanceOptions, 'density', 'score', 'scope', 'compensation')}
             ${usageOf(importanceOptions, 'windows', 'window', 'seed')} ${usageOf(engineOptions)}
      Which changes of a model to its base matter, by what it makes of its inputs: masks.safetensors (one bit per
      weight, or the compensated changes) and importance.json. Without --text and --tokens the model writes its own
      text; of --tokens as many windows are read as there are, unless --windows says how many.
`,

  options: measuring,

  parse(args) {
    const { subject: model, options, given } = parseOne('importance', 'model', args, measuring);
    const {
      base,
      text,
      tokens,
      density,
      score,
      scope,
      compensation = 'off',
      windows,
      window,
      seed,
    } = options;
    if (base === undefined) throw usage('importance needs --base MODEL, what the model was made from.');
    const out = outOf('importance', options);
    inputOf('importance', text, tokens);
    if (tokens !== undefined && !isTokensFile(tokens)) {
      throw usage(`--tokens is ${tokens}; it is a file of token ids whose name ends in .json.`);
    }
    const chosen = {
      ...(score === undefined ? {} : { score }),
      ...(scope === undefined ? {} : { scope }),
      compensation,
    };
    return {
      out,
      ...runOf(options),
      ...(tokens !== undefined && {
        tokensFile: tokens,
        ...(given.has('windows') && { windows }),
        ...(given.has('window') && { window }),
      }),
      recipe: {
        mergeMethod: 'task_arithmetic',
        baseModel: base,
        models: [{ model, parameters: { weight: 1, density, calibration: text ?? tokens ?? 'self' } }],
        parameters: {
          selector: 'importance',
          ...chosen,
          calibration_windows: windows,
          calibration_window: window,
        },
        amalgam: { seed },
      },
    };
  },

  async run(command, place) {
    const { workingFolder, write } = place;
    const { folder, output } = await openOutput(command.out, place);
    const recipe = await sizedRecipe(command, workingFolder);
    const job = await openJob(recipe, resolve(workingFolder, 'model'), place, command);
    if (!(await plannedJob(job, place)).clean) return 1;
    const destination = job.worker.writeTo(output);
    const request = { recipe: job.recipe, engine: command.engine, destination };
    const report = await withProgress((print) => job.calls.importance(request, print));
    requireCommitted(output);
    await write(`${importanceText(report, folder)}\n`);
    return 0;
  },
};

/**
 * How many windows of which length are read of `count` token ids: as asked, else windows of 256 (of all where there are
 * fewer), as many as there are without overlap.
 */
export function tokenWindows(
  count: number,
  { windows, window }: Pick<ImportanceCommand, 'windows' | 'window'>,
): { windows: number; window: number } {
  const length = window ?? Math.min(importanceOptions.window.default, count);
  return { windows: windows ?? Math.max(1, Math.floor(count / length)), window: length };
}

/** The recipe with windows for as many token ids as the file has. */
async function sizedRecipe(command: ImportanceCommand, workingFolder: string): Promise<Recipe> {
  const { recipe, tokensFile } = command;
  if (tokensFile === undefined) return recipe;
  const ids = parseTokens(await readTextFile(tokensFile, workingFolder), tokensFile);
  const { windows, window } = tokenWindows(ids.length, command);
  return {
    ...recipe,
    parameters: { ...recipe.parameters, calibration_windows: windows, calibration_window: window },
  };
}

/** The report in a few lines. */
function importanceText(report: ImportanceReport, out: string): string {
  const tensors = report.computed + report.reused;
  const reads = report.contributors.map(
    ({ id, calibration, forwardTokens }) =>
      `${displayName(id)}: ${displayName(calibration, 200)}; ${forwardTokens === 0 ? 'nothing was run' : `${formatCounted(forwardTokens, 'token')} run`}`,
  );
  const counts = `${formatCounted(tensors, 'mask')}, ${formatCount(report.reused)} of them found in the cache`;
  const peak = report.peakBytes > 0 ? `, ${formatBytes(report.peakBytes)} on the device at most` : '';
  return [
    ...reads,
    `${counts}; ${formatSeconds(report.seconds)}${peak}`,
    ...report.notes.slice(0, 10).map((note) => displayName(note, 200)),
    `${displayName(out)}: masks.safetensors, importance.json`,
  ].join('\n');
}
