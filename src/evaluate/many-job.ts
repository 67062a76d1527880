/** Perplexity of several models and merges side by side. */
import { AmalgamError, type ErrorReport, errorReport } from '../errors';
import type {
  EvaluatedModel,
  EvaluateManyReport,
  EvaluateManyRequest,
  RunningProgress,
} from '../reports/evaluate';
import { mostTokens, neededTokenizer, readInput } from './job';
import {
  checkInput,
  DEFAULT_PROTOCOL,
  type EvaluateInput,
  type Evaluation,
  startEvaluation,
} from './perplexity';
import type { RunningModel } from './running-model';
import { runSideBySide, type SideBySideOptions, tokenizerKey } from './side-by-side';

export interface EvaluateManyOptions extends SideBySideOptions {
  onProgress(progress: RunningProgress): void;
}

/**
 * Evaluates every target on every text. A target that cannot be run, or a text it cannot score, is an error in its
 * place; the others go on.
 * @throws AmalgamError `NoWebGpu`, `Canceled`, `Usage`
 */
export async function runEvaluations(
  request: EvaluateManyRequest,
  options: EvaluateManyOptions,
): Promise<EvaluateManyReport> {
  const { targets, inputs, window, stride } = { ...DEFAULT_PROTOCOL, ...request };
  const protocol = { window, stride };
  if (targets.length === 0 || inputs.length === 0) {
    throw new AmalgamError('Usage', 'There is nothing to measure.', 'Name a model and a text at least.');
  }
  const models = targets.map((): EvaluatedModel => ({ outcomes: [], bytes: null }));
  const encoded = new Map<string, Awaited<ReturnType<typeof encode>>>();
  const report = await runSideBySide<Evaluation & { texts: number[] }>(
    {
      targets,
      engine: request.engine,
      masked: true,
      tokens: mostTokens(inputs),
      planned({ index, plan }) {
        models[index]!.bytes = plan.bytesToWrite;
      },
      async begin(entry, model) {
        const key = tokenizerKey(entry);
        const own = encoded.get(key) ?? (await encode(inputs, model));
        encoded.set(key, own);
        const texts: number[] = [];
        for (const [t, input] of own.entries()) {
          if ('error' in input) {
            models[entry.index]!.outcomes[t] = input;
            continue;
          }
          try {
            checkInput(model.runner, input, protocol);
            texts.push(t);
          } catch (thrown) {
            models[entry.index]!.outcomes[t] = { error: errorReport(thrown) };
          }
        }
        if (texts.length === 0) return undefined;
        const chosen = texts.map((t) => own[t] as EvaluateInput);
        const evaluation = startEvaluation(model.runner, chosen, protocol, options.signal);
        return Object.assign(evaluation, { texts });
      },
      end({ index }, evaluation, seconds) {
        const reports = evaluation.reports();
        const scored = reports.reduce((sum, r) => sum + r.tokens, 0);
        for (const [i, one] of reports.entries()) {
          const own = { ...one, seconds: (seconds * one.tokens) / scored };
          models[index]!.outcomes[evaluation.texts[i]!] = { report: own };
        }
      },
      fail(index, thrown) {
        models[index]!.outcomes = inputs.map((_, i) => {
          const known = models[index]!.outcomes[i];
          return known && 'error' in known ? known : { error: errorReport(thrown) };
        });
      },
      onProgress(progress, finished) {
        const done = finished.map((index) => ({ index, model: models[index]! }));
        options.onProgress(done.length > 0 ? { ...progress, finished: done } : progress);
      },
    },
    options,
  );
  return { models, ...report };
}

/** Token ids of every text for one model, or the error that prevents them. */
async function encode(
  inputs: EvaluateManyRequest['inputs'],
  model: RunningModel,
): Promise<(EvaluateInput | { error: ErrorReport })[]> {
  const tokenizer = await neededTokenizer(inputs, model);
  const encoded: (EvaluateInput | { error: ErrorReport })[] = [];
  for (const input of inputs) {
    // a model without a chat template reads the other texts all the same
    const read = readInput(input, tokenizer, model);
    encoded.push(await read.catch((thrown: unknown) => ({ error: errorReport(thrown) })));
  }
  return encoded;
}
