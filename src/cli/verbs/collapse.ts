import {
  calibrationOptions,
  kindOptions,
  lacoOptions,
  plannerOptions,
  targetOptions,
} from '../../collapse/options';
import type {
  Calibration,
  CollapsePlanner,
  CollapseRequest,
  DepthTarget,
  MeasureDepthRequest,
} from '../../reports/collapse';
import type { OptionValues } from '../../reports/option';
import { oneOf, outOf, outOption, parseOne, runOf, runOptions, usage, usageOf } from '../arguments';
import { collapseText, measureText } from '../collapse-print';
import { evaluationOptions, type InputFile, inputOf, readInput, readText } from '../input-files';
import { openNamed, type Where } from '../job';
import { openOutput, requireCommitted } from '../output-folder';
import { withProgress } from '../progress-printer';
import { reportWriter } from '../report-file';
import type { Verb } from '../verb';

interface CollapseCommand extends Where {
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

const formOptions = {
  text: { kind: 'list', whole: true, argument: 'FILE', help: 'A text of the kind the model is for.' },
  tokens: { kind: 'text', argument: 'IDS.json', help: 'A text as token ids.' },
  layers: { kind: 'text', argument: 'LIST', help: 'Layers that go, such as 3,7-9, from 0.' },
  measure: { kind: 'boolean', help: 'Only says what could go.', default: false },
  noPerplexity: { kind: 'boolean', help: 'Measures no perplexity.', default: false },
} as const;

const collapseOptions = {
  ...{ ...outOption, ...formOptions, ...calibrationOptions, ...plannerOptions, ...targetOptions },
  ...{ ...lacoOptions, ...kindOptions, ...evaluationOptions, ...runOptions },
};

type Values = OptionValues<typeof collapseOptions>;

/** How layers are chosen, which goes without a list of them and with a model to write. */
const CHOOSING = ['planner', 'remove', 'ratio', 'threshold'];

export const collapseVerb: Verb<CollapseCommand> = {
  name: 'collapse',
  usage: `  collapse <model> --out DIR (--text FILE… | --tokens IDS.json) ${usageOf(calibrationOptions)}
           ${usageOf(plannerOptions, 'planner')} [${oneOf(targetOptions)}] ${usageOf(plannerOptions, 'threshold')}
           ${usageOf(lacoOptions)} ${usageOf(plannerOptions, 'allTokens')}
           ${usageOf(kindOptions)}
           [${oneOf(evaluationOptions)} | --no-perplexity]
           ${usageOf(runOptions)}
  collapse <model> --out DIR --layers LIST [--text FILE… | --tokens IDS.json] …
      A shallower model. laco collapses blocks of --block layers while what the model says stays similar (--threshold,
      0.75), influence removes the layers of least block influence, angular the block over which the stream turns
      least; those two need one of --remove, --ratio and --threshold. --layers names layers yourself (3,7-9, from 0).
      Perplexity before and after is measured on --eval-text, else on the calibration text.

  collapse <model> --measure (--text FILE… | --tokens IDS.json) [--block ${lacoOptions.block.default} [--variant …] [--parts …]]
           [--report FILE.json] …
      Only says what could go: block influence, angular distances and, with --block, the similarity left when the block
      at each layer is collapsed.
`,

  options: collapseOptions,

  parse(args) {
    const { subject: model, options, given } = parseOne('collapse', 'model', args, collapseOptions);
    const { engine, ...where } = runOf(options);
    const calibration = calibrationOf(options);
    const common = { ...where, ...(calibration && { calibration }) };
    const { variant = 'rdsc', parts, block } = options;
    if (options.measure) {
      if (!calibration) throw usage('collapse --measure needs --text FILE or --tokens IDS.json.');
      const odd = ['out', 'layers', ...CHOOSING].find((flag) => given.has(flag));
      if (odd !== undefined) throw usage(`collapse --measure writes no model; --${odd} does not go with it.`);
      const curve = given.has('block') && { curve: { block, variant, parts } };
      return { ...common, task: { kind: 'measure', request: { model, engine, ...curve } } };
    }
    const out = outOf('collapse', options);
    const planner = plannerOf(options, given);
    if (planner.kind !== 'manual' && !calibration) {
      throw usage(
        'collapse needs --text FILE or --tokens IDS.json to find out which layers can go, or --layers LIST.',
      );
    }
    const evaluation = options.noPerplexity
      ? null
      : inputOf('collapse', options.evalText, options.evalTokens, 'eval-');
    const kind = { variant: options.variant ?? (planner.kind === 'laco' ? 'rdsc' : 'drop'), parts };
    return {
      ...common,
      task: {
        ...{ kind: 'collapse', out, request: { model, engine, planner, ...kind } },
        ...(evaluation === undefined ? {} : { evaluation }),
      },
    };
  },

  async run(command, place) {
    const { workingFolder, write } = place;
    const { task } = command;
    const writeReport = await reportWriter(command.report, workingFolder);
    const calibration = await readCalibration(command.calibration, workingFolder);
    const asked = task.kind === 'collapse' ? task.evaluation : undefined;
    const evaluation = asked && (await readInput(asked, workingFolder));
    const opened = task.kind === 'collapse' ? await openOutput(task.out, place) : undefined;
    const { engine } = task.request;
    const { calls, worker, refs } = await openNamed([task.request.model], place, { ...command, engine });
    const [model] = refs;
    if (task.kind === 'measure') {
      const request = { ...task.request, model, calibration: calibration! };
      const report = await withProgress((print) => calls.measureDepth(request, print));
      await writeReport(report);
      await write(`${measureText(report)}\n`);
      return 0;
    }
    const { folder, output } = opened!;
    const request = {
      ...task.request,
      model,
      ...(calibration && { calibration }),
      ...(evaluation === undefined ? {} : { evaluation }),
      destination: worker.writeTo(output),
    };
    const report = await withProgress((print) => calls.collapse(request, print));
    requireCommitted(output);
    await writeReport(report);
    await write(`${collapseText(report, folder)}\n`);
    return 0;
  },
};

function calibrationOf({ text, tokens, perLine, window }: Values): CollapseCommand['calibration'] {
  if (text.length > 0 && tokens !== undefined) {
    throw usage('collapse takes either --text FILE or --tokens IDS.json, not both.');
  }
  if (tokens !== undefined) return { tokensFile: tokens, window };
  return text.length > 0 ? { textFiles: text, perLine, window } : undefined;
}

function plannerOf(options: Values, given: ReadonlySet<string>): CollapsePlanner {
  const { layers, planner: kind, threshold, block, lowest, highest, interval, allTokens } = options;
  if (layers !== undefined) {
    const odd = CHOOSING.find((flag) => given.has(flag));
    if (odd !== undefined) throw usage(`--layers names the layers; --${odd} does not go with it.`);
    return { kind: 'manual', remove: layersOf(layers) };
  }
  const target = targetOf(options);
  if (kind === 'laco') {
    return {
      ...{ kind, block, lowest, interval },
      ...(highest === undefined ? {} : { highest }),
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
    : { kind, target: chosen, tokens: allTokens ? 'all' : 'last' };
}

function targetOf({ remove, ratio }: Values): DepthTarget | undefined {
  if (remove !== undefined && ratio !== undefined) throw usage('Give either --remove or --ratio.');
  if (remove !== undefined) return { remove };
  return ratio === undefined ? undefined : { ratio };
}

/** `3,7-9` → 3, 7, 8, 9. @throws Usage */
function layersOf(text: string): number[] {
  return text.split(',').flatMap((part) => {
    const [, begin, end = begin] = /^\s*(\d{1,5})(?:-(\d{1,5}))?\s*$/.exec(part) ?? [];
    if (begin === undefined || Number(end) < Number(begin)) {
      throw usage(`--layers is ${text}; it is a list of layers such as 3,7-9, counted from 0.`);
    }
    return Array.from({ length: Number(end) - Number(begin) + 1 }, (_, i) => Number(begin) + i);
  });
}

async function readCalibration(
  given: CollapseCommand['calibration'],
  workingFolder: string,
): Promise<Calibration | undefined> {
  if (!given) return undefined;
  const { window } = given;
  if ('tokensFile' in given) {
    const input = await readInput({ tokensFile: given.tokensFile }, workingFolder);
    return 'ids' in input ? { input, window } : undefined;
  }
  const files = await Promise.all(given.textFiles.map((name) => readText(name, workingFolder)));
  const texts = given.perLine
    ? files.flatMap((text) => text.split(/\r?\n/).filter((line) => line.trim() !== ''))
    : files;
  return { input: { texts }, window };
}
