import { toolVerb } from '../../cli/tool-verb';
import { compareOptions } from './options';
import { compareText } from './words';

export const verb = toolVerb({
  name: 'compare',
  subjects: ['base', 'finetuned'],
  about:
    'How two models differ, tensor by tensor, as text, JSON and a page. --no-lora-analysis leaves out the spectra of modified matrices, --time-engines measures everything on both engines.',
  options: compareOptions,
  read: async () => undefined,
  async run(calls, { models, engine, options, destination }, onProgress) {
    const [base, finetuned] = models as [string, string];
    const { threshold, top, loraAnalysis, timeEngines } = options;
    const request = { base, finetuned, engine, threshold, top, loraAnalysis, timeEngines };
    return calls.compare({ ...request, ...(destination && { destination }) }, onProgress);
  },
  print: compareText,
});
