/** A whole comparison: tensors, configs, architectures and tokenizers of two models. */

import { AmalgamError } from '../../errors';
import { repositoriesOf } from '../../formats/recipe';
import type { Adapter } from '../../inputs/adapter';
import type { Checkpoint } from '../../inputs/checkpoint';
import { compareConfigs } from '../../inputs/config-difference';
import type { Model } from '../../inputs/model';
import { modelTensors } from '../../inputs/model-tensors';
import { elementCount, layerCount } from '../../inputs/opened-model';
import { collectProblems, nameSome } from '../../inputs/problems';
import type { OpenByPath } from '../../merge/plan/recipe-models';
import { resolveCopies, resolveHeads } from '../../merge/plan/tied-heads';
import { AMALGAM_VERSION } from '../../merge/version';
import { type CompareOptions, compareTensors } from './compare-tensors';
import { findingsOf } from './findings';
import type { ArchitectureComparison, ArchitectureInfo, CompareReport } from './report';
import { compareTokenizerFiles } from './tokenizer-difference';

/** Architectures of two models and their differences in words, from configs alone. */
function compareArchitectures(base: Model, tuned: Model): ArchitectureComparison {
  const info = { base: architectureOf(base), finetuned: architectureOf(tuned) };
  return { ...info, words: wordsFor(info.base, info.finetuned) };
}

function architectureOf(model: Model): ArchitectureInfo {
  const { checkpoint, tensors, tied } = model;
  const { config } = checkpoint;
  const dtypes: Record<string, number> = {};
  let parameters = 0;
  for (const { dtype: read, shape, view } of tensors.values()) {
    const stored = view.origin.derived?.from[0]?.dtype;
    const dtype = stored === 'F64' ? stored : read;
    dtypes[dtype] = (dtypes[dtype] ?? 0) + 1;
    parameters += elementCount(shape);
  }
  return {
    modelType: config?.modelType ?? null,
    architectures: config?.architectures ?? [],
    layers: layerCount(checkpoint),
    hiddenSize: config?.hiddenSize ?? null,
    intermediateSize: config?.intermediateSize ?? null,
    attentionHeads: config?.attentionHeads ?? null,
    keyValueHeads: config?.keyValueHeads ?? null,
    vocabularySize: config?.vocabSize ?? null,
    tiedHead: tied,
    tensors: tensors.size,
    parameters,
    dtypes,
  };
}

/** Fields and how a sentence names them. */
const NAMES: readonly [keyof ArchitectureInfo, string][] = [
  ['modelType', 'model type'],
  ['architectures', 'architecture'],
  ['layers', 'number of layers'],
  ['hiddenSize', 'hidden size'],
  ['intermediateSize', 'intermediate size'],
  ['attentionHeads', 'number of attention heads'],
  ['keyValueHeads', 'number of key-value heads'],
  ['vocabularySize', 'vocabulary size'],
  ['tensors', 'number of tensors'],
  ['parameters', 'number of parameters'],
];

function wordsFor(a: ArchitectureInfo, b: ArchitectureInfo): string[] {
  const words = NAMES.filter(([key]) => text(a[key]) !== text(b[key])).map(
    ([key, name]) => `The ${name} is ${text(a[key])} in the base and ${text(b[key])} in the fine-tune.`,
  );
  if (a.tiedHead !== b.tiedHead) {
    const [tied, own] = a.tiedHead ? ['base', 'fine-tune'] : ['fine-tune', 'base'];
    words.push(`The ${tied} ties its head to the embedding, the ${own} has a head of its own.`);
  }
  const dtypes = [a, b].map(dtypeText);
  if (dtypes[0] !== dtypes[1])
    words.push(`Weights are stored as ${dtypes[0]} in the base and as ${dtypes[1]} in the fine-tune.`);
  return words.length > 0 ? words : ['Both have the same architecture.'];
}

function text(value: ArchitectureInfo[keyof ArchitectureInfo]): string {
  if (value === null) return 'not given';
  return Array.isArray(value) ? value.join(', ') || 'not given' : String(value);
}

function dtypeText({ dtypes }: ArchitectureInfo): string {
  return Object.keys(dtypes).sort().join(', ');
}

export interface Comparison {
  report: Omit<CompareReport, 'files' | 'stages'>;
  /** Name → ‖Δ‖ of every row. */
  rowNorms: Map<string, Float32Array>;
}

/**
 * Compares two models.
 *
 * @param notes sentences about how the models were put together
 * @throws AmalgamError see {@link compareTensors}
 */
export async function compareModels(options: CompareOptions, notes: readonly string[]): Promise<Comparison> {
  const begin = performance.now();
  const { base, tuned, engine, signal } = options;
  const { rowNorms, ...tensors } = await compareTensors(options);
  const found = {
    base: base.ref,
    finetuned: tuned.ref,
    engine: engine.kind,
    adapter: engine.adapter,
    version: AMALGAM_VERSION,
    threshold: options.threshold,
    ...tensors,
    config: compareConfigs(base.checkpoint.config, tuned.checkpoint.config),
    architecture: compareArchitectures(base, tuned),
    tokenizer: await compareTokenizerFiles(base.checkpoint, tuned.checkpoint, signal),
  };
  const words = [...findingsOf(found), ...notes];
  return { report: { ...found, words, seconds: (performance.now() - begin) / 1000 }, rowNorms };
}

// ---------------------------------------------------------------- the two models, opened and put together with their adapters

export interface Sides {
  base: Model;
  tuned: Model;
  /** Remarks from opening the pair, as sentences. */
  notes: string[];
}

/**
 * Opens both models by their references. Heads are brought to one form, so that a tied head and a separate one can be
 * compared.
 *
 * @throws AmalgamError `Usage` (an adapter without its model, a model behind a “+”), `PlanHasErrors` (an adapter that does
 *   not fit its model), and errors of opening
 */
export async function openSides(base: string, finetuned: string, open: OpenByPath): Promise<Sides> {
  const problems = collectProblems();
  const models: Model[] = [];
  for (const ref of [base, finetuned]) {
    const [path, adapterPath] = repositoriesOf(ref);
    const checkpoint = await openCheckpointPart(path, ref, open);
    const adapter = adapterPath === undefined ? undefined : await openAdapterPart(adapterPath, open);
    models.push(modelTensors(ref, checkpoint, adapter, problems, undefined, true));
  }
  resolveCopies(models, problems);
  resolveHeads(models, problems);
  const doubles = models.filter(({ checkpoint }) =>
    [...checkpoint.tensors.values()].some(({ dtype }) => dtype === 'F64'),
  );
  if (doubles.length > 0) {
    const refs = nameSome(doubles.map(({ ref }) => ref));
    problems.note('RoundedToF32', `What ${refs} stores as F64 is rounded to F32 before it is compared.`);
  }
  const error = problems.list().find(({ severity }) => severity === 'error');
  if (error) throw new AmalgamError('PlanHasErrors', error.message, error.remedy);
  const notes = problems
    .list()
    .map(({ severity, message, remedy }) =>
      severity === 'warning' ? `Warning: ${message} ${remedy}` : message,
    );
  return { base: models[0]!, tuned: models[1]!, notes };
}

async function openCheckpointPart(path: string, ref: string, open: OpenByPath): Promise<Checkpoint> {
  const model = await open(path);
  if (model.kind === 'checkpoint') return model;
  throw new AmalgamError(
    'Usage',
    `${ref} is an adapter, not a model.`,
    `Write the model it belongs to in front of it: ${model.config.baseModel ?? 'MODEL'}+${ref}. LoRAs alone are combined by a recipe.`,
  );
}

async function openAdapterPart(path: string, open: OpenByPath): Promise<Adapter> {
  const model = await open(path);
  if (model.kind === 'adapter') return model;
  throw new AmalgamError(
    'Usage',
    `${path} stands behind a “+”, but it is a whole model.`,
    `Compare with ${path} itself.`,
  );
}
