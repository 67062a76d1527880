/** Perplexity in llama.cpp by the strided protocol that is ours too: windows of 256 tokens at steps of 128. */
import { cutWindows, DEFAULT_PROTOCOL } from '../src/evaluate/perplexity';
import type { LlamaModel } from './llama-cpp';

export function llamaPerplexity(model: LlamaModel, ids: readonly number[]): number {
  const { window, stride } = DEFAULT_PROTOCOL;
  let loss = 0;
  for (const { begin, end, from } of cutWindows(ids.length, window, stride)) {
    const logits = model.logits(ids.slice(begin, end));
    for (let position = from; position < end - begin; position++) {
      const row = logits.subarray((position - 1) * model.vocabulary, position * model.vocabulary);
      let most = -Infinity;
      for (const logit of row) most = Math.max(most, logit);
      let sum = 0;
      for (const logit of row) sum += Math.exp(logit - most);
      loss += most + Math.log(sum) - row[ids[begin + position]!]!;
    }
  }
  return Math.exp(loss / (ids.length - 1));
}
