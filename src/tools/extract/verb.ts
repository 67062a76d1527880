import { evaluationOptions, inputOf, readInput } from '../../cli/input-files';
import { toolVerb } from '../../cli/tool-verb';
import { extractOptions, rankOf } from './options';
import { extractText } from './words';

export const verb = toolVerb({
  name: 'extract-lora',
  subjects: ['base', 'finetuned'],
  about:
    'The difference as a LoRA adapter for PEFT. --energy keeps this share of each change, --cutoff singular values down to this share of the largest, --budget what captures most in so many bytes. --include and --exclude choose modules by a part of their path. --eval-text measures the perplexity of base, base with adapter and fine-tune.',
  options: { ...extractOptions, ...evaluationOptions },
  async read({ evalText, evalTokens }, workingFolder) {
    const file = inputOf('extract-lora', evalText, evalTokens, 'eval-');
    return file && (await readInput(file, workingFolder));
  },
  async run(calls, { models, engine, options, read: evaluation, destination }, onProgress) {
    const [base, finetuned] = models as [string, string];
    const { maxRank, include, exclude, embeddings, vectors, dtype, seed } = options;
    return calls.extractLora(
      {
        ...{ base, finetuned, engine, destination: destination!, rank: rankOf(options)! },
        ...{ maxRank, include, exclude, embeddings, vectors, dtype, seed },
        ...(evaluation && { evaluation }),
      },
      onProgress,
    );
  },
  print: extractText,
});
