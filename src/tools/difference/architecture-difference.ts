import type { Model } from '../../inputs/model';
import { elementCount, layerCount } from '../../inputs/opened-model';
import type { ArchitectureComparison, ArchitectureInfo } from './report';

/** What two models are built like, and where they differ, in words. Nothing is read. */
export function compareArchitectures(base: Model, tuned: Model): ArchitectureComparison {
  const info = { base: architectureOf(base), finetuned: architectureOf(tuned) };
  return { ...info, words: wordsFor(info.base, info.finetuned) };
}

function architectureOf(model: Model): ArchitectureInfo {
  const { checkpoint, tensors, tied } = model;
  const { config } = checkpoint;
  const dtypes: Record<string, number> = {};
  let parameters = 0;
  for (const { dtype, shape } of tensors.values()) {
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
