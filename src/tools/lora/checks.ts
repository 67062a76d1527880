/** Refusals to extract an adapter, in words. */

import { AmalgamError, errorReport } from '../../errors';
import { counted } from '../../formats/quantity';
import { openAdapter } from '../../inputs/adapter';
import type { Model } from '../../inputs/model';
import { modelTensors } from '../../inputs/model-tensors';
import { collectProblems, nameSome } from '../../inputs/problems';
import type { ReadTensor } from '../../inputs/stored-tensor';
import { resolveHeads } from '../../merge/plan/tied-heads';
import { bufferSource } from '../../sources/byte-source';
import type { ModelFolder } from '../../sources/model-folder';
import { bytesToCompare } from '../difference/compare-tensors';
import { measurePair, visitPairs } from '../difference/pair-task';
import { mayDiffer, pairTensors, type TensorPairs } from '../difference/tensor-pairs';
import type { AdapterFile } from './adapter-file';
import { type ChangedTensors, type ExtractOptions, targetOf } from './lora-modules';

/** Options of an extraction that are checked before any weight is read. */
type ExtractChoices = Pick<ExtractOptions, 'base' | 'tuned' | 'settings'>;

/**
 * Checks a request from configs and headers alone.
 * @returns the tensors in pairs
 * @throws AmalgamError `Usage`, or `NothingToExtract` when the models cannot be a base and its fine-tune
 */
export function checkExtraction(choices: ExtractChoices): TensorPairs {
  const pairs = pairTensors(choices.base, choices.tuned);
  refuseUnrelated(choices, pairs);
  return pairs;
}

function refuseUnrelated({ base, tuned, settings }: ExtractChoices, pairs: TensorPairs): void {
  if (base.adapter) {
    throw new AmalgamError(
      'Usage',
      `The base ${base.ref} is a model with an adapter, which an extracted adapter could not be put on.`,
      'Extract from the model without its adapter, or merge the two first and use the result as base.',
    );
  }
  const [a, b] = [base, tuned].map(({ checkpoint }) => checkpoint.config?.modelType);
  if (a !== undefined && b !== undefined && a !== b) {
    throw unrelated(`${tuned.ref} is a ${b} model, but ${base.ref} is a ${a} model.`);
  }
  if (pairs.shared.length + pairs.shapeMismatches.length === 0) {
    throw unrelated(`${base.ref} and ${tuned.ref} have no tensor in common.`);
  }
  const ends = [base.embedding, base.head];
  const other = pairs.shapeMismatches.filter(({ name, base: shape }) => {
    const key = [...base.tensors].find(([, tensor]) => tensor.name === name)![0];
    return !ends.includes(key) && targetOf({ name, shape }, key, base, settings).carrier === 'factors';
  });
  if (other.length > 0) {
    const names = nameSome(other.map(({ name, base: x, finetuned: y }) => `${name} [${x}] and [${y}]`));
    throw unrelated(
      `${other.length === 1 ? '1 matrix has another shape' : `${other.length} matrices have other shapes`} in ${tuned.ref} than in ${base.ref}: ${names}.`,
    );
  }
}

function unrelated(message: string): AmalgamError {
  return new AmalgamError(
    'NothingToExtract',
    message,
    'An adapter leads from a model to one that was fine-tuned from it; choose two such models.',
  );
}

/** @throws AmalgamError `NothingToExtract` when there is no matrix to make factors of */
export function requireChange(
  { modules, changed, compared, left, saved }: ChangedTensors,
  options: ExtractOptions,
): void {
  if (modules.length > 0) return;
  const { base, tuned } = options;
  if (changed.length === 0 && left.length === 0) {
    throw new AmalgamError(
      'NothingToExtract',
      `${base.ref} and ${tuned.ref} are identical in all ${counted(compared, 'tensor')}: the difference is zero and has rank 0, so there is nothing to extract.`,
      'If you expected a difference, check that you gave the right two models.',
    );
  }
  const names = nameSome([
    ...changed,
    ...left.map(({ name }) => name).filter((name) => !changed.includes(name)),
  ]);
  const ends = [base.embedding, base.head, tuned.head].map((key) => key?.replace(/\.weight$/, ''));
  if (
    options.settings.embeddings === 'save' &&
    [...saved].some((module) => ends.some((end) => end && module.endsWith(end)))
  ) {
    throw new AmalgamError(
      'NothingToExtract',
      `What differs, ${names}, would all be carried whole, and an adapter needs at least one module with factors.`,
      'Take embedding and head as factors (--embeddings lora), or share the fine-tune as it is.',
    );
  }
  throw new AmalgamError(
    'NothingToExtract',
    `No matrix that differs is left for factors; what differs is ${names}.`,
    'An adapter needs at least one module with factors: choose other modules, or embeddings as factors, or share the fine-tune as it is.',
  );
}

// ---------------------------------------------------------------- merging the adapter into its base before it is written, and measuring how far from the fine-tune it lands

/** The name of the adapter in messages; no model folder is called so. */
export const ADAPTER = 'the extracted adapter';

export interface MergeCheck {
  /** Name in the base → ‖finetuned − merged‖² and the largest difference. */
  tensors: Map<string, { squares: number; largest: number }>;
  failed: { name: string; message: string }[];
}

/**
 * Opens the adapter by the same code as any adapter, puts it on the base, merges tensor by tensor in f32 and compares
 * with the fine-tune.
 *
 * @throws AmalgamError `Internal` when what is about to be written cannot be read or does not fit; `Canceled`; failures of
 *   the engine
 */
export async function checkMerged(
  file: AdapterFile,
  configText: string,
  options: ExtractOptions,
): Promise<MergeCheck> {
  const { tuned } = options;
  const merged = await adaptedBase(file, configText, options.base);
  resolveHeads([merged, tuned], collectProblems());
  const shared = pairTensors(merged, tuned).shared.filter(mayDiffer);
  options.onPhase?.('checking', bytesToCompare({ shared, raw: [] }), shared.length);
  const read: ReadTensor = (ref, begin, end) =>
    ref.folder === ADAPTER
      ? file.source.read(ref.begin + begin, ref.begin + end)
      : options.read(ref, begin, end);
  const check: MergeCheck = { tensors: new Map(), failed: [] };
  await visitPairs(shared, { ...options, read }, async (open) => {
    const { name } = open.pair;
    try {
      const { squares, largest } = await measurePair(open, 0);
      check.tensors.set(name, { squares, largest });
    } catch (thrown) {
      const { code, message } = errorReport(thrown);
      if (code !== 'NonFinite') throw thrown;
      check.failed.push({ name, message });
    }
  });
  return check;
}

async function adaptedBase(file: AdapterFile, configText: string, base: Model): Promise<Model> {
  const problems = collectProblems();
  let why: string | undefined;
  try {
    const adapter = await openAdapter(adapterFolder(file, configText), ADAPTER);
    const model = modelTensors(base.ref, base.checkpoint, adapter, problems, undefined, true);
    why = problems.list().find(({ severity }) => severity === 'error')?.message;
    if (why === undefined) return model;
  } catch (thrown) {
    const { code, message } = errorReport(thrown);
    if (code === 'Canceled') throw thrown;
    why = message;
  }
  throw new AmalgamError(
    'Internal',
    `The extracted adapter does not fit its own base: ${why}`,
    'This is a fault in Amalgam; nothing was saved. Please report it.',
  );
}

/** An adapter that is not written yet, as a folder like any other. */
export function adapterFolder(file: AdapterFile, configText: string): ModelFolder {
  const config = new TextEncoder().encode(configText);
  return {
    path: ADAPTER,
    origin: { kind: 'local' },
    files: [
      { path: 'adapter_config.json', byteLength: config.length, open: () => bufferSource(config) },
      { path: file.plan.file, byteLength: file.source.byteLength, open: () => file.source },
    ],
  };
}
