/** Perplexity of an adapter that is about to be written, beside its base and the fine-tune it was extracted from. */

import { runEvaluation } from '../../evaluate/job';
import { copyOf, formatModelRef, parseModelRef } from '../../formats/recipe';
import type { OpenModels } from '../../host/models';
import { openAdapter } from '../../inputs/adapter';
import { methodById } from '../../merge/methods';
import { requireClean } from '../../merge/plan/clean-plan';
import { makePlan } from '../../merge/plan/recipe-plan';
import type { BackendChoice } from '../../reports/backend';
import { findFile } from '../../sources/model-folder';
import type { AdapterFile } from './adapter-file';
import { ADAPTER, adapterFolder } from './merge-check';
import type { ExtractLoraReport } from './report';

interface AdapterCostOptions {
  base: string;
  finetuned: string;
  input: { text: string } | { ids: number[] };
  engine: BackendChoice;
  models: OpenModels;
  signal: AbortSignal;
  /** Which of the three is running, and the share of it that is done. */
  onProgress(title: string, share: number): void;
}

/**
 * Runs base, base + adapter and fine-tune over the same text; the adapter is read from memory like any other.
 * @throws AmalgamError what running a model throws
 */
export async function adapterPerplexity(
  file: AdapterFile,
  config: string,
  { base, finetuned, input, engine, models, signal, onProgress }: AdapterCostOptions,
): Promise<NonNullable<ExtractLoraReport['perplexity']>> {
  const folder = adapterFolder(file, config);
  const withAdapter: OpenModels = {
    ...models,
    open: (path) => (path === ADAPTER ? openAdapter(folder, ADAPTER) : models.open(path)),
    file: (of, path) => (of === ADAPTER ? { folder, file: findFile(folder, path)! } : models.file(of, path)),
  };
  const measure = async (model: string, title: string) => {
    const plan = await makePlan(copyOf(model), withAdapter.open, methodById);
    requireClean(plan);
    return runEvaluation(
      { target: { model }, input, engine },
      {
        plan,
        models: withAdapter,
        engine,
        exact: true,
        signal,
        onProgress: ({ phase, done, total }) => onProgress(title, phase === 'running' ? done / total : 0),
      },
    );
  };
  const adapted = formatModelRef({ ...parseModelRef(base), adapter: { path: ADAPTER } });
  return {
    base: await measure(base, 'base'),
    adapted: await measure(adapted, 'base with adapter'),
    finetuned: await measure(finetuned, 'fine-tune'),
  };
}
