import { usage } from '../../cli/arguments';
import { readInput, readText } from '../../cli/input-files';
import { toolVerb } from '../../cli/tool-verb';
import type { Options, OptionValues } from '../../reports/option';
import { checkTarget } from './choose-layers';
import { collapseOptions, settingsOf, variantOf } from './options';
import type { CollapseReport, MeasureLayersReport } from './report';
import { collapseText, measureText } from './words';

const textOptions = {
  text: { kind: 'list', whole: true, argument: 'FILE', help: 'A text of the kind the model is for.' },
  tokens: { kind: 'text', argument: 'IDS.json', help: 'A text as token ids.' },
  measure: { kind: 'boolean', help: 'Only says what could go, and writes no model.', default: false },
} as const satisfies Options;

const options = { ...textOptions, ...collapseOptions };

export const verb = toolVerb({
  name: 'collapse',
  subjects: ['model'],
  about:
    'A shallower model. laco folds blocks of --block layers while what the model says stays similar, influence removes the layers of least block influence, angular the block over which the stream turns least. A text is needed to run the model on: --text or --tokens. Perplexity before and after is measured on it. --measure only says what could go: block influence, angular distances and, with --block, the similarity left when the block at each layer is collapsed.',
  options,
  writes: ({ measure }) => !measure,

  check({ options: typed, given }) {
    const { text, tokens, measure } = typed;
    if (text.length > 0 && tokens !== undefined) {
      throw usage('collapse takes either --text FILE or --tokens IDS.json, not both.');
    }
    if (text.length === 0 && tokens === undefined) {
      throw usage(
        'collapse needs --text FILE or --tokens IDS.json: which layers can go is found by running.',
      );
    }
    if (!measure) return checkTarget(typed);
    const odd = ['out', 'planner', 'remove', 'ratio', 'threshold'].find((flag) => given.has(flag));
    if (odd !== undefined) throw usage(`collapse --measure writes no model; --${odd} does not go with it.`);
  },

  async read(typed, workingFolder) {
    return { input: await readTexts(typed, workingFolder), window: typed.window };
  },

  async run(calls, { models, engine, options: typed, given, read: calibration, destination }, onProgress) {
    const [model] = models as [string];
    if (!destination) {
      const curve = given.has('block') && { curve: { block: typed.block, variant: variantOf(typed) } };
      return calls.measureLayers({ model, engine, calibration, ...curve }, onProgress);
    }
    return calls.collapse(
      {
        ...{ model, engine, destination, settings: settingsOf(typed), calibration },
        perplexity: typed.perplexity,
      },
      onProgress,
    );
  },

  print: (report: CollapseReport | MeasureLayersReport, folder) =>
    'stack' in report ? collapseText(report, folder) : measureText(report),
});

/** Each file, or each of its lines, is a text of its own. */
async function readTexts({ text, tokens, perLine }: OptionValues<typeof options>, workingFolder: string) {
  if (tokens !== undefined) {
    const input = await readInput({ tokensFile: tokens }, workingFolder);
    return 'ids' in input ? input : { texts: [input.text] };
  }
  const files = await Promise.all(text.map((name) => readText(name, workingFolder)));
  const lines = (file: string) => file.split(/\r?\n/).filter((line) => line.trim() !== '');
  return { texts: perLine ? files.flatMap(lines) : files };
}
