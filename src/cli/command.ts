import { GGUF_TYPES, isGgufType } from '../formats/gguf-type';
import type { RecipeExtensions } from '../formats/recipe';
import type { BackendChoice } from '../reports/backend';
import type { DatasetRequest } from '../reports/dataset';
import { engineOption, numberOption, parseOne, parseSome, usage, whereOptions } from './arguments';
import { COLLAPSE_USAGE, type CollapseCommand, parseCollapse } from './collapse-command';
import {
  COMPARE_USAGE,
  type CompareCommand,
  type ExtractLoraCommand,
  parseCompare,
  parseExtractLora,
} from './compare-command';
import { IMPORTANCE_USAGE, type ImportanceCommand, parseImportance } from './importance-command';
import { PUSH_USAGE, type PushCommand, type PushOptions, parsePush, repoOption } from './push-verb';
import { parseSearch, SEARCH_USAGE, type SearchCommand } from './search-command';
import { parseTasks, TASK_USAGE, type TaskCommand } from './task-command';

/** What the command line asks for. Paths are as typed. */
export type Command =
  | { verb: 'help'; about?: string }
  | { verb: 'version' }
  | { verb: 'completion' }
  | { verb: 'plan'; recipe: string; hub?: string; cache?: string; json: boolean }
  | MergeCommand
  | { verb: 'verify'; merged: string; recipe?: string; hub?: string; cache?: string; engine: BackendChoice }
  | EvaluateCommand
  | TaskCommand
  | GenerateCommand
  | CompareCommand
  | ExtractLoraCommand
  | CollapseCommand
  | ImportanceCommand
  | PushCommand
  | SearchCommand;

export interface MergeCommand {
  verb: 'merge';
  recipe: string;
  hub?: string;
  cache?: string;
  out: string;
  engine: BackendChoice;
  report?: string;
  /** Goes on with what an interrupted merge left, and leaves the like when interrupted. */
  resume: boolean;
  /** Compares methods on text and merges the best. */
  recommended: boolean;
  /** What the command line says beside the recipe. */
  form: Pick<RecipeExtensions, 'output' | 'gguf' | 'ggufOnly' | 'imatrix'>;
  push?: PushOptions;
}

interface RunCommand {
  /** A model reference, or the path of a recipe whose merge is run without being written. */
  model: string;
  hub?: string;
  cache?: string;
  engine: BackendChoice;
  report?: string;
}

export interface EvaluateCommand extends RunCommand {
  verb: 'evaluate';
  /** Models and recipes besides, measured side by side with the first. */
  others?: string[];
  input: { textFile: string } | { tokensFile: string } | { dataset: DatasetRequest };
  window: number;
  stride: number;
  perToken: boolean;
}

export interface GenerateCommand extends RunCommand {
  verb: 'generate';
  prompt: string;
  chat: boolean;
  maxTokens: number;
  temperature: number;
  topP: number;
  seed: number;
}

export const USAGE = `Usage: npm run --silent amalgam -- <command> …

  plan <recipe.yml> [--json] [--hub URL] [--cache DIR]
      Reads headers only and says what a merge would do. Exit code 1 when the recipe does not fit the models.

  merge <recipe.yml> --out DIR [--recommended] [--adapter] [--gguf TYPE [--gguf-only] [--imatrix TEXT]] [--resume]
        [--engine auto|webgpu|cpu] [--push owner/name [--private]] [--report FILE.json] [--hub URL] [--cache DIR]
      Merges into DIR, which must not exist or be empty. --gguf also writes the result for llama.cpp, as one of the types
      ${GGUF_TYPES.join(', ')}; --gguf-only writes nothing else. --imatrix weights columns
      by how the result uses them on a text: a file beside the recipe, or self for text it generates. A model in place of
      the recipe is converted. With --adapter LoRAs stay a LoRA, which llama.cpp reads too: base+adapter --adapter
      --gguf F16. --recommended takes base, models and calibration from the recipe, compares methods on
      text and merges the best. --report writes every tensor's statistics. With --resume an interrupted merge keeps what it
      has written beside DIR, and the same command continues from there. --push sends the result to the Hub.

  verify <merged> [--recipe FILE] [--engine auto|webgpu|cpu] [--hub URL] [--cache DIR]
      Repeats the merge that a merged model's metadata describes and compares the bytes. Exit code 1 when they differ.
      The metadata names models, not folders: they are looked up beside the merged folder, or where the recipe of --recipe
      has them.

  evaluate <model> … (--text FILE | --tokens IDS.json | --dataset owner/name[@rev]:path[:column])
           [--rows N] [--characters 200000] [--window 256] [--stride 128] [--per-token]
           [--report FILE.json] [--engine auto|webgpu|cpu] [--hub URL] [--cache DIR]
      Perplexity of a model on a text, on an array of token ids, or on a text, jsonl or parquet file of a dataset on
      the Hub, of which the first rows or characters are taken. Conversations are read by the model's chat template.
      Several models and recipes are measured side by side.

${TASK_USAGE}
  generate <model> --prompt TEXT [--chat] [--max-tokens 64] [--temperature 0] [--top-p 1] [--seed 0]
           [--report FILE.json] [--engine auto|webgpu|cpu] [--hub URL] [--cache DIR]
      Continues a text; with --chat, answers it using the model's chat template.

${COMPARE_USAGE}
${COLLAPSE_USAGE}
${IMPORTANCE_USAGE}
${SEARCH_USAGE}
${PUSH_USAGE}
  completion
      Prints a bash completion script: eval "$(amalgam completion)".

--version prints the version, --help after a command prints its arguments; --quiet hides progress.
<model> is a folder, a Hub id, or model+adapter; a recipe file in its place runs the merge without writing it.
A model in the recipe is a folder beside the recipe, else a folder in the working directory, else a Hub id.
HF_TOKEN in the environment gives access to private and gated models. CHROMIUM_PATH chooses the browser.
`;

const VERBS =
  'plan, merge, verify, evaluate, generate, compare, extract-lora, collapse, importance, search and push';

/**
 * Reads the command line (without `node` and the script).
 * @throws Usage saying which argument is wrong.
 */
export function parseCommand(args: string[]): Command {
  const [verb, ...rest] = args;
  if (verb === undefined) throw usage(`The command is missing. Commands: ${VERBS}.`);
  if (verb === '--version') return { verb: 'version' };
  if (verb === 'help') return { verb, ...(rest[0] === undefined ? {} : { about: rest[0] }) };
  if (args.includes('--help') || args.includes('-h')) {
    return { verb: 'help', ...(verb.startsWith('-') ? {} : { about: verb }) };
  }
  switch (verb) {
    case 'completion':
      return { verb };
    case 'push':
      return parsePush(rest);
    case 'plan': {
      const { subject: recipe, options } = parseOne(verb, 'recipe file', rest, {
        json: { type: 'boolean' },
        hub: { type: 'string' },
        cache: { type: 'string' },
      });
      return { verb, recipe, json: options.json === true, ...whereOptions(options) };
    }
    case 'merge': {
      const { subject: recipe, options } = parseOne(verb, 'recipe file', rest, {
        out: { type: 'string' },
        resume: { type: 'boolean' },
        recommended: { type: 'boolean' },
        adapter: { type: 'boolean' },
        engine: { type: 'string' },
        report: { type: 'string' },
        hub: { type: 'string' },
        cache: { type: 'string' },
        gguf: { type: 'string' },
        'gguf-only': { type: 'boolean' },
        imatrix: { type: 'string' },
        push: { type: 'string' },
        private: { type: 'boolean' },
      });
      const { out, engine = 'auto', report } = options;
      if (typeof out !== 'string' || out === '') throw usage('merge needs --out DIR, the folder to write.');
      return {
        verb,
        recipe,
        out,
        resume: options.resume === true,
        recommended: options.recommended === true,
        form: {
          ...(options.adapter === true ? { output: 'adapter' } : {}),
          ...ggufOptions(options.gguf, options['gguf-only'], options.imatrix),
        },
        ...pushOptions(options),
        engine: engineOption(engine),
        ...(typeof report === 'string' ? { report } : {}),
        ...whereOptions(options),
      };
    }
    case 'verify': {
      const { subject: merged, options } = parseOne(verb, 'merged folder', rest, {
        engine: { type: 'string' },
        recipe: { type: 'string' },
        hub: { type: 'string' },
        cache: { type: 'string' },
      });
      const { engine = 'auto' } = options;
      return {
        verb,
        merged,
        engine: engineOption(engine),
        ...(typeof options.recipe === 'string' ? { recipe: options.recipe } : {}),
        ...whereOptions(options),
      };
    }
    case 'evaluate':
      return rest.some((arg) => /^--task(=|$)/.test(arg)) ? parseTasks(rest) : parseEvaluate(rest);
    case 'generate':
      return parseGenerate(rest);
    case 'search':
      return parseSearch(rest);
    case 'importance':
      return parseImportance(rest);
    case 'compare':
      return parseCompare(rest);
    case 'extract-lora':
      return parseExtractLora(rest);
    case 'collapse':
      return parseCollapse(rest);
    default:
      throw usage(`There is no command ${verb}. Commands: ${VERBS}.`);
  }
}

function pushOptions(options: Record<string, unknown>): { push?: PushOptions } {
  const isPrivate = options.private === true;
  if (typeof options.push !== 'string') {
    if (isPrivate) throw usage('--private needs --push owner/name.');
    return {};
  }
  const { hub } = whereOptions(options);
  const push = { repo: repoOption(options.push), private: isPrivate, replace: false };
  return { push: { ...push, ...(hub === undefined ? {} : { hub }) } };
}

/** The usage of one verb, every form of it, or of all where there is no such verb. */
export function helpText(about: string | undefined): string {
  const isOf = (text: string) => text.split('\n').some((line) => line.startsWith(`  ${about} `));
  const found = USAGE.split('\n\n').filter(isOf);
  return about === undefined || found.length === 0 ? USAGE : `${found.join('\n\n').trimEnd()}\n`;
}

/** Verbs with their options, as the usage names them. */
export function verbOptions(): Map<string, string[]> {
  const names = VERBS.split(/, | and /);
  return new Map(names.map((verb) => [verb, [...new Set(helpText(verb).match(/--[a-z][a-z-]*/g))]]));
}

/** Completion for bash: verbs, then the options of the verb, else files. */
export function completionText(): string {
  const verbs = verbOptions();
  const cases = [...verbs].map(([verb, options]) => `    ${verb}) words='${options.join(' ')}' ;;`);
  return `_amalgam() {
  local words='' current="\${COMP_WORDS[COMP_CWORD]}"
  case "\${COMP_WORDS[1]}" in
${cases.join('\n')}
  esac
  [ "$COMP_CWORD" = 1 ] && words='${[...verbs.keys()].join(' ')}'
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _amalgam amalgam
`;
}

function ggufOptions(type: unknown, only: unknown, imatrix: unknown): MergeCommand['form'] {
  const text = typeof imatrix === 'string' ? { imatrix } : {};
  if (typeof type !== 'string') {
    if (only === true) throw usage('--gguf-only needs --gguf TYPE.');
    // a type may stand in the recipe
    return text;
  }
  if (!isGgufType(type)) throw usage(`--gguf is ${type}; it is one of ${GGUF_TYPES.join(', ')}.`);
  return only === true ? { gguf: type, ggufOnly: true, ...text } : { gguf: type, ...text };
}

const RUN_OPTIONS = {
  engine: { type: 'string' },
  report: { type: 'string' },
  hub: { type: 'string' },
  cache: { type: 'string' },
} as const;

function parseEvaluate(args: string[]): EvaluateCommand {
  const { subjects, options } = parseSome('evaluate', 'model', args, {
    ...RUN_OPTIONS,
    text: { type: 'string' },
    tokens: { type: 'string' },
    dataset: { type: 'string' },
    rows: { type: 'string' },
    characters: { type: 'string' },
    window: { type: 'string' },
    stride: { type: 'string' },
    'per-token': { type: 'boolean' },
  });
  const [model, ...others] = subjects as [string, ...string[]];
  if (others.length > 0 && options['per-token'] === true) throw usage('--per-token is for one model.');
  const given = [options.text, options.tokens, options.dataset].filter((o) => typeof o === 'string');
  if (given.length !== 1) {
    throw usage(
      'evaluate needs either --text FILE, --tokens IDS.json, --dataset owner/name:path or --task NAME.',
    );
  }
  return {
    verb: 'evaluate',
    model,
    ...(others.length > 0 && { others }),
    ...runOptions(options),
    input: evaluateInput(options),
    window: numberOption('window', options.window, 256, 2, true),
    stride: numberOption('stride', options.stride, 128, 1, true),
    perToken: options['per-token'] === true,
  };
}

function evaluateInput({ text, tokens, dataset, rows, characters }: Record<string, unknown>) {
  if (typeof dataset !== 'string' && (rows !== undefined || characters !== undefined)) {
    throw usage('--rows and --characters belong to --dataset.');
  }
  if (typeof text === 'string') return { textFile: text };
  if (typeof dataset !== 'string') return { tokensFile: String(tokens) };
  const [, ref, path, column] = /^([^:]+):([^:]+)(?::(.+))?$/.exec(dataset) ?? [];
  if (ref === undefined || path === undefined) {
    throw usage(`--dataset is ${dataset}; it is owner/name[@revision]:path[:column].`);
  }
  return {
    dataset: {
      ref,
      path,
      ...(column === undefined ? {} : { column }),
      ...(rows === undefined ? {} : { rows: numberOption('rows', rows, 1, 1, true) }),
      characters: numberOption('characters', characters, 200_000, 1, true),
    },
  };
}

function parseGenerate(args: string[]): GenerateCommand {
  const { subject: model, options } = parseOne('generate', 'model', args, {
    ...RUN_OPTIONS,
    prompt: { type: 'string' },
    chat: { type: 'boolean' },
    'max-tokens': { type: 'string' },
    temperature: { type: 'string' },
    'top-p': { type: 'string' },
    seed: { type: 'string' },
  });
  if (typeof options.prompt !== 'string') throw usage('generate needs --prompt TEXT.');
  return {
    verb: 'generate',
    model,
    ...runOptions(options),
    prompt: options.prompt,
    chat: options.chat === true,
    maxTokens: numberOption('max-tokens', options['max-tokens'], 64, 1, true),
    temperature: numberOption('temperature', options.temperature, 0, 0, false),
    topP: numberOption('top-p', options['top-p'], 1, 0, false),
    seed: numberOption('seed', options.seed, 0, 0, true),
  };
}

function runOptions(options: Record<string, unknown>) {
  const { engine = 'auto', report } = options;
  return {
    engine: engineOption(engine),
    ...(typeof report === 'string' ? { report } : {}),
    ...whereOptions(options),
  };
}
