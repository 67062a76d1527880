import { extractOptions, rankOptions } from './options';
import type { ExtractLoraRequest, RankChoice } from '../difference/report';
import type { OptionValues } from '../../reports/option';
import { numberOf, oneOf, outOf, outOption, parseTwo, runOf, runOptions, usage, usageOf } from '../../cli/arguments';
import { type BothCommand, TWO_MODELS, withBoth } from '../../cli/both-models';
import { extractText } from '../difference/words';
import { evaluationOptions, type InputFile, inputOf, readInput } from '../../cli/input-files';
import { reportWriter } from '../../cli/report-file';
import type { Verb } from '../../cli/verb';

export interface ExtractLoraCommand extends BothCommand {
  report?: string;
  /** What base, base with adapter and fine-tune are run on. */
  evaluation?: InputFile;
  request: Omit<ExtractLoraRequest, 'destination' | 'evaluation'>;
}

const UNITS: Readonly<Record<string, number>> = { kb: 1e3, mb: 1e6, gb: 1e9 };
/** A budget may be typed with a unit. */
const typedRanks = { ...rankOptions, budget: { ...rankOptions.budget, kind: 'text' } } as const;

const extracting = { ...outOption, ...typedRanks, ...extractOptions, ...evaluationOptions, ...runOptions };

export const extractLoraVerb: Verb<ExtractLoraCommand> = {
  name: 'extract-lora',
  usage: `  extract-lora <base> <finetuned> --out DIR (${oneOf(rankOptions)})
           ${usageOf(extractOptions, 'maxRank', 'include', 'exclude', 'embeddings', 'vectors')}
           ${usageOf(extractOptions, 'dtype', 'seed')} [${oneOf(evaluationOptions)}]
           ${usageOf(runOptions)}
      The difference as a LoRA adapter for PEFT. --energy keeps this share of each change, --cutoff singular values
      down to this share of the largest, --budget what captures most in so many bytes (a number, or such as 20MB).
      --include and --exclude choose modules by a part of their path. --eval-text measures the perplexity of base,
      base with adapter and fine-tune.
`,

  options: extracting,

  parse(args) {
    const { subjects, options } = parseTwo('extract-lora', TWO_MODELS, args, extracting);
    const [base, finetuned] = subjects;
    const { maxRank, include, exclude, embeddings, vectors, dtype, seed } = options;
    const evaluation = inputOf('extract-lora', options.evalText, options.evalTokens, 'eval-');
    const { engine, ...where } = runOf(options);
    return {
      out: outOf('extract-lora', options),
      ...where,
      ...(evaluation && { evaluation }),
      request: {
        ...{ base, finetuned, engine, rank: rankOf(options) },
        ...{ maxRank, include, exclude, embeddings, vectors, dtype, seed },
      },
    };
  },

  async run(command, place) {
    const writeReport = await reportWriter(command.report, place.workingFolder);
    const evaluation = command.evaluation && (await readInput(command.evaluation, place.workingFolder));
    const { report, folder } = await withBoth(command, place, (calls, both, onProgress) =>
      calls.extractLora({ ...command.request, ...both, ...(evaluation && { evaluation }) }, onProgress),
    );
    await writeReport(report);
    await place.write(`${extractText(report, folder)}\n`);
    return 0;
  },
};

function rankOf({ rank, energy, cutoff, budget }: OptionValues<typeof typedRanks>): RankChoice {
  if ([rank, energy, cutoff, budget].filter((value) => value !== undefined).length !== 1) {
    throw usage('extract-lora needs exactly one of --rank, --energy, --cutoff and --budget.');
  }
  if (rank !== undefined) return { kind: 'rank', rank };
  if (energy !== undefined) return { kind: 'energy', share: energy };
  if (cutoff !== undefined) return { kind: 'cutoff', ratio: cutoff };
  const [, digits, unit = ''] = /^([\d.]+) ?([kmg]b)?$/i.exec(budget!) ?? [];
  const bytes = Math.floor(Number(digits ?? 'none') * (UNITS[unit.toLowerCase()] ?? 1));
  const typed = Number.isNaN(bytes) ? budget! : String(bytes);
  return { kind: 'bytes', bytes: numberOf('budget', rankOptions.budget, typed) };
}
