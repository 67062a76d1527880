/** The verb `collapse` as it is typed. */
import type { CollapsePlanner, CollapseRequest, DepthTarget, MeasureDepthRequest } from '../reports/collapse';
import { choiceOption, engineOption, numberOption, parseOne, usage, whereOptions } from './arguments';
import { type InputFile, inputOption } from './input-files';

export interface CollapseCommand {
  verb: 'collapse';
  hub?: string;
  cache?: string;
  report?: string;
  /** Where texts come from; each file, or each of its lines, is a text of its own. */
  calibration?:
    | { textFiles: string[]; perLine: boolean; window: number }
    | { tokensFile: string; window: number };
  /** What is done: only measured, or collapsed into `out`. */
  task:
    | { kind: 'measure'; request: Omit<MeasureDepthRequest, 'calibration'> }
    | {
        kind: 'collapse';
        out: string;
        /** Absent: the calibration text; null: not at all. */
        evaluation?: InputFile | null;
        request: Omit<CollapseRequest, 'destination' | 'calibration' | 'evaluation'>;
      };
}

export const COLLAPSE_USAGE = `  collapse <model> --out DIR (--text FILE… | --tokens IDS.json) [--per-line] [--window 256]
           [--planner laco|influence|angular] [--remove N | --ratio SHARE] [--threshold T]
           [--block 3] [--lowest 0] [--highest LAST] [--interval 2] [--all-tokens]
           [--variant rdsc|replace-last|mean|drop] [--parts linear|full|attention|mlp]
           [--eval-text FILE | --eval-tokens IDS.json | --no-perplexity]
           [--report FILE.json] [--engine auto|webgpu|cpu] [--hub URL] [--cache DIR]
  collapse <model> --out DIR --layers LIST [--text FILE… | --tokens IDS.json] …
      A shallower model. laco collapses blocks of --block layers while what the model says stays similar (--threshold,
      0.75), influence removes the layers of least block influence, angular the block over which the stream turns
      least; those two need one of --remove, --ratio and --threshold. --layers names layers yourself (3,7-9, from 0).
      Perplexity before and after is measured on --eval-text, else on the calibration text.

  collapse <model> --measure (--text FILE… | --tokens IDS.json) [--block 3 [--variant …] [--parts …]]
           [--report FILE.json] …
      Only says what could go: block influence, angular distances and, with --block, the similarity left when the block
      at each layer is collapsed.
`;

/** @throws Usage */
export function parseCollapse(args: string[]): CollapseCommand {
  const { subject: model, options } = parseOne('collapse', 'model', args, {
    ...Object.fromEntries(TEXT_OPTIONS.map((name) => [name, { type: 'string' } as const])),
    text: { type: 'string', multiple: true },
    measure: { type: 'boolean' },
    'per-line': { type: 'boolean' },
    'all-tokens': { type: 'boolean' },
    'no-perplexity': { type: 'boolean' },
  });
  const engine = engineOption(options.engine ?? 'auto');
  const calibration = calibrationOption(options);
  const common = {
    verb: 'collapse' as const,
    ...whereOptions(options),
    ...(typeof options.report === 'string' ? { report: options.report } : {}),
    ...(calibration && { calibration }),
  };
  if (options.measure === true) {
    if (!calibration) throw usage('collapse --measure needs --text FILE or --tokens IDS.json.');
    const odd = ['out', 'layers', 'planner', 'remove', 'ratio', 'threshold'].find(
      (name) => options[name] !== undefined,
    );
    if (odd !== undefined) throw usage(`collapse --measure writes no model; --${odd} does not go with it.`);
    const curve =
      options.block === undefined
        ? undefined
        : { block: blockOption(options), ...kindOptions(options, 'rdsc') };
    return { ...common, task: { kind: 'measure', request: { model, engine, ...(curve && { curve }) } } };
  }
  const { out } = options;
  if (typeof out !== 'string' || out === '') throw usage('collapse needs --out DIR, the folder to write.');
  const planner = plannerOption(options);
  if (planner.kind !== 'manual' && !calibration) {
    throw usage(
      'collapse needs --text FILE or --tokens IDS.json to find out which layers can go, or --layers LIST.',
    );
  }
  const evaluation = options['no-perplexity'] === true ? null : inputOption('collapse', options, 'eval-');
  return {
    ...common,
    task: {
      kind: 'collapse',
      out,
      ...(evaluation === undefined ? {} : { evaluation }),
      request: { model, engine, planner, ...kindOptions(options, planner.kind === 'laco' ? 'rdsc' : 'drop') },
    },
  };
}

const TEXT_OPTIONS = [
  ...[
    'out',
    'engine',
    'hub',
    'cache',
    'report',
    'tokens',
    'window',
    'planner',
    'layers',
    'remove',
    'ratio',
    'threshold',
  ],
  ...['block', 'lowest', 'highest', 'interval', 'variant', 'parts', 'eval-text', 'eval-tokens'],
];

function calibrationOption(options: Record<string, unknown>): CollapseCommand['calibration'] {
  const window = numberOption('window', options.window, 256, 2, true);
  const texts = Array.isArray(options.text) ? options.text.map(String) : [];
  if (texts.length > 0 && options.tokens !== undefined) {
    throw usage('collapse takes either --text FILE or --tokens IDS.json, not both.');
  }
  if (typeof options.tokens === 'string') return { tokensFile: options.tokens, window };
  return texts.length > 0 ? { textFiles: texts, perLine: options['per-line'] === true, window } : undefined;
}

function plannerOption(options: Record<string, unknown>): CollapsePlanner {
  if (typeof options.layers === 'string') {
    const odd = ['planner', 'remove', 'ratio', 'threshold'].find((name) => options[name] !== undefined);
    if (odd !== undefined) throw usage(`--layers names the layers; --${odd} does not go with it.`);
    return { kind: 'manual', remove: layerOption(options.layers) };
  }
  const kind = choiceOption('planner', options.planner, ['laco', 'influence', 'angular']);
  const target = targetOption(options);
  const threshold =
    options.threshold === undefined ? undefined : numberOption('threshold', options.threshold, 0, -1, false);
  if (kind === 'laco') {
    const whole = (name: string) =>
      options[name] === undefined ? {} : { [name]: numberOption(name, options[name], 0, 0, true) };
    return {
      kind,
      block: blockOption(options),
      ...whole('lowest'),
      ...whole('highest'),
      ...whole('interval'),
      ...(threshold === undefined ? {} : { threshold }),
      ...(target && { target }),
    };
  }
  if ((target === undefined) === (threshold === undefined)) {
    throw usage(`--planner ${kind} needs exactly one of --remove, --ratio and --threshold.`);
  }
  const chosen = target ?? { threshold: threshold! };
  return kind === 'influence'
    ? { kind, target: chosen }
    : { kind, target: chosen, tokens: options['all-tokens'] === true ? 'all' : 'last' };
}

function targetOption(options: Record<string, unknown>): DepthTarget | undefined {
  if (options.remove !== undefined && options.ratio !== undefined)
    throw usage('Give either --remove or --ratio.');
  if (options.remove !== undefined) return { remove: numberOption('remove', options.remove, 0, 1, true) };
  return options.ratio === undefined
    ? undefined
    : { ratio: numberOption('ratio', options.ratio, 0, 0, false) };
}

const blockOption = (options: Record<string, unknown>) => numberOption('block', options.block, 3, 2, true);

function kindOptions(options: Record<string, unknown>, variant: 'rdsc' | 'drop') {
  const first = variant === 'rdsc' ? (['rdsc', 'drop'] as const) : (['drop', 'rdsc'] as const);
  return {
    variant: choiceOption('variant', options.variant, [...first, 'replace-last', 'mean']),
    parts: choiceOption('parts', options.parts, ['linear', 'full', 'attention', 'mlp']),
  };
}

/** `3,7-9` → 3, 7, 8, 9. @throws Usage */
function layerOption(text: string): number[] {
  return text.split(',').flatMap((part) => {
    const [, begin, end = begin] = /^\s*(\d{1,5})(?:-(\d{1,5}))?\s*$/.exec(part) ?? [];
    if (begin === undefined || Number(end) < Number(begin)) {
      throw usage(`--layers is ${text}; it is a list of layers such as 3,7-9, counted from 0.`);
    }
    return Array.from({ length: Number(end) - Number(begin) + 1 }, (_, i) => Number(begin) + i);
  });
}
