/** The verbs `compare` and `extract-lora` as they are typed. */
import type { CompareRequest, ExtractLoraRequest, RankChoice } from '../reports/compare';
import {
  choiceOption,
  engineOption,
  numberOption,
  type Options,
  parseTwo,
  usage,
  whereOptions,
} from './arguments';
import { type InputFile, inputOption } from './input-files';

const TWO_MODELS = 'two models, the base and the fine-tune';

export interface CompareCommand {
  verb: 'compare';
  out: string;
  hub?: string;
  cache?: string;
  request: Omit<CompareRequest, 'destination'>;
}

export interface ExtractLoraCommand {
  verb: 'extract-lora';
  out: string;
  hub?: string;
  cache?: string;
  report?: string;
  /** What base, base with adapter and fine-tune are run on. */
  evaluation?: InputFile;
  request: Omit<ExtractLoraRequest, 'destination' | 'evaluation'>;
}

export const COMPARE_USAGE = `  compare <base> <finetuned> --out DIR [--threshold 1e-6] [--top 20] [--no-lora-analysis] [--time-engines]
           [--engine auto|webgpu|cpu] [--hub URL] [--cache DIR]
      How two models differ, tensor by tensor, as text, JSON and a page. --no-lora-analysis leaves out the spectra of
      modified matrices, --time-engines measures everything on both engines.

  extract-lora <base> <finetuned> --out DIR (--rank R | --energy SHARE | --cutoff RATIO | --budget BYTES)
           [--max-rank 128] [--include PART]… [--exclude PART]… [--embeddings save|lora|skip] [--vectors save|skip]
           [--dtype float32|float16|bfloat16] [--seed 0] [--eval-text FILE | --eval-tokens IDS.json]
           [--report FILE.json] [--engine auto|webgpu|cpu] [--hub URL] [--cache DIR]
      The difference as a LoRA adapter for PEFT. --energy keeps this share of each change, --cutoff singular values
      down to this share of the largest, --budget what captures most in so many bytes (a number, or such as 20MB).
      --include and --exclude choose modules by a part of their path. --eval-text measures the perplexity of base,
      base with adapter and fine-tune.
`;

/** @throws Usage */
export function parseCompare(args: string[]): CompareCommand {
  const { subjects, options } = parseTwo('compare', TWO_MODELS, args, {
    ...COMMON,
    threshold: { type: 'string' },
    top: { type: 'string' },
    'no-lora-analysis': { type: 'boolean' },
    'time-engines': { type: 'boolean' },
  });
  const [base, finetuned] = subjects;
  return {
    verb: 'compare',
    out: outOption('compare', options.out),
    ...whereOptions(options),
    request: {
      base,
      finetuned,
      engine: engineOption(options.engine ?? 'auto'),
      threshold: numberOption('threshold', options.threshold, 1e-6, 0, false),
      top: numberOption('top', options.top, 20, 0, true),
      loraAnalysis: options['no-lora-analysis'] !== true,
      timeEngines: options['time-engines'] === true,
    },
  };
}

/** @throws Usage */
export function parseExtractLora(args: string[]): ExtractLoraCommand {
  const { subjects, options } = parseTwo('extract-lora', TWO_MODELS, args, {
    ...COMMON,
    rank: { type: 'string' },
    energy: { type: 'string' },
    cutoff: { type: 'string' },
    budget: { type: 'string' },
    'max-rank': { type: 'string' },
    include: { type: 'string', multiple: true },
    exclude: { type: 'string', multiple: true },
    embeddings: { type: 'string' },
    vectors: { type: 'string' },
    dtype: { type: 'string' },
    seed: { type: 'string' },
    report: { type: 'string' },
    'eval-text': { type: 'string' },
    'eval-tokens': { type: 'string' },
  });
  const [base, finetuned] = subjects;
  const { report } = options;
  const evaluation = inputOption('extract-lora', options, 'eval-');
  return {
    verb: 'extract-lora',
    out: outOption('extract-lora', options.out),
    ...whereOptions(options),
    ...(typeof report === 'string' ? { report } : {}),
    ...(evaluation && { evaluation }),
    request: {
      base,
      finetuned,
      engine: engineOption(options.engine ?? 'auto'),
      rank: rankOption(options),
      maxRank: numberOption('max-rank', options['max-rank'], 128, 1, true),
      include: listOption(options.include),
      exclude: listOption(options.exclude),
      embeddings: choiceOption('embeddings', options.embeddings, ['save', 'lora', 'skip']),
      vectors: choiceOption('vectors', options.vectors, ['save', 'skip']),
      dtype: DTYPES[choiceOption('dtype', options.dtype, ['float32', 'float16', 'bfloat16'])],
      seed: numberOption('seed', options.seed, 0, 0, true),
    },
  };
}

const COMMON: Options = {
  out: { type: 'string' },
  engine: { type: 'string' },
  hub: { type: 'string' },
  cache: { type: 'string' },
};
const DTYPES = { float32: 'F32', float16: 'F16', bfloat16: 'BF16' } as const;
const UNITS: Readonly<Record<string, number>> = { kb: 1e3, mb: 1e6, gb: 1e9 };

function outOption(verb: string, out: unknown): string {
  if (typeof out === 'string' && out !== '') return out;
  throw usage(`${verb} needs --out DIR, the folder to write.`);
}

function rankOption(options: Record<string, unknown>): RankChoice {
  const given = ['rank', 'energy', 'cutoff', 'budget'].filter((name) => options[name] !== undefined);
  if (given.length !== 1) {
    throw usage('extract-lora needs exactly one of --rank, --energy, --cutoff and --budget.');
  }
  switch (given[0]) {
    case 'rank':
      return { kind: 'rank', rank: numberOption('rank', options.rank, 0, 1, true) };
    case 'energy':
      return { kind: 'energy', share: numberOption('energy', options.energy, 0, 0, false) };
    case 'cutoff':
      return { kind: 'cutoff', ratio: numberOption('cutoff', options.cutoff, 0, 0, false) };
    default: {
      const [, digits, unit = ''] = /^([\d.]+) ?([kmg]b)?$/i.exec(String(options.budget)) ?? [];
      const bytes = Math.floor(Number(digits ?? 'none') * (UNITS[unit.toLowerCase()] ?? 1));
      return {
        kind: 'bytes',
        bytes: numberOption('budget', Number.isNaN(bytes) ? options.budget : String(bytes), 0, 1, true),
      };
    }
  }
}

function listOption(given: unknown): string[] {
  const parts = Array.isArray(given) ? given : [];
  return parts.flatMap((part) => String(part).split(',')).filter((part) => part !== '');
}
