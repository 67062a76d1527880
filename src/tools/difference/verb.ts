import { compareOptions } from './options';
import type { CompareRequest } from './report';
import { engineOptions, outOf, outOption, parseTwo, runOf, usageOf } from '../../cli/arguments';
import { type BothCommand, TWO_MODELS, withBoth } from '../../cli/both-models';
import { compareText } from './words';
import type { Verb } from '../../cli/verb';

export interface CompareCommand extends BothCommand {
  request: Omit<CompareRequest, 'destination'>;
}

const comparing = { ...outOption, ...compareOptions, ...engineOptions };

export const compareVerb: Verb<CompareCommand> = {
  name: 'compare',
  usage: `  compare <base> <finetuned> --out DIR ${usageOf(compareOptions)}
           ${usageOf(engineOptions)}
      How two models differ, tensor by tensor, as text, JSON and a page. --no-lora-analysis leaves out the spectra of
      modified matrices, --time-engines measures everything on both engines.
`,

  options: comparing,

  parse(args) {
    const { subjects, options } = parseTwo('compare', TWO_MODELS, args, comparing);
    const [base, finetuned] = subjects;
    const { threshold, top, loraAnalysis, timeEngines } = options;
    const { engine, ...where } = runOf(options);
    return {
      out: outOf('compare', options),
      ...where,
      request: { base, finetuned, engine, threshold, top, loraAnalysis, timeEngines },
    };
  },

  async run(command, place) {
    const { report, folder } = await withBoth(command, place, (calls, both, onProgress) =>
      calls.compare({ ...command.request, ...both }, onProgress),
    );
    await place.write(`${compareText(report, folder)}\n`);
    return 0;
  },
};
