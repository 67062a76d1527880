import { usage } from '../../cli/arguments';
import { readText } from '../../cli/input-files';
import { toolVerb } from '../../cli/tool-verb';
import type { Options } from '../../reports/option';
import { transplantOptions } from './options';
import type { TransplantPlan, TransplantReport } from './report';
import { planText, transplantText } from './words';

const textOptions = {
  text: {
    kind: 'list',
    whole: true,
    argument: 'FILE',
    help: 'A text that the model is measured on before and after, in bits per byte.',
  },
  plan: { kind: 'boolean', help: 'Only says what would be done and how long it takes.', default: false },
} as const satisfies Options;

export const verb = toolVerb({
  name: 'transplant',
  subjects: ['model', 'donor'],
  about:
    'The model with the tokenizer of the donor. Rows of tokens that both have are taken over, however the two spell them; those of new tokens are made of others. Nothing is trained.',
  options: { ...transplantOptions, ...textOptions },
  writes: ({ plan }) => !plan,

  check({ options: { plan }, given }) {
    const odd = ['out', 'text'].find((flag) => given.has(flag));
    if (plan && odd) throw usage(`transplant --plan writes and runs no model; --${odd} does not go with it.`);
  },

  read: ({ text }, workingFolder) => Promise.all(text.map((name) => readText(name, workingFolder))),

  async run(calls, { models, engine, options, read: texts, destination }, onProgress) {
    const { text: _, plan: __, ...form } = options;
    const asked = { model: models[0]!, donor: models[1]!, form, engine };
    if (!destination) return calls.planTransplant(asked, onProgress);
    return calls.transplant({ ...asked, texts, destination }, onProgress);
  },

  print: (report: TransplantPlan | TransplantReport, folder) =>
    'shards' in report ? transplantText(report, folder) : planText(report),
});
