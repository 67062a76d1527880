/** Refusals to extract an adapter, in words. */

import { AmalgamError } from '../../errors';
import { nameSome } from '../../inputs/problems';
import { pairTensors, type TensorPairs } from '../difference/tensor-pairs';
import type { ChangedTensors, ExtractOptions } from './lora-modules';
import { targetOf } from './lora-targets';
import { checkRankChoice } from './rank-choice';

/** Options of an extraction that are checked before any weight is read. */
type ExtractChoices = Pick<ExtractOptions, 'base' | 'tuned' | 'rank' | 'maxRank' | 'settings'>;

/**
 * Checks a request from configs and headers alone.
 * @returns the tensors in pairs
 * @throws AmalgamError `Usage`, or `NothingToExtract` when the models cannot be a base and its fine-tune
 */
export function checkExtraction(choices: ExtractChoices): TensorPairs {
  checkRankChoice(choices.rank, choices.maxRank);
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
      `${base.ref} and ${tuned.ref} are identical in all ${compared} tensors: the difference is zero and has rank 0, so there is nothing to extract.`,
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
