/** The plan of a merge whose change is cut to a LoRA of the base: that of the merged model, and what is written in its place. */
import { COMBINATIONS_OF } from '../../formats/adapter-combination';
import { ADAPTER_WEIGHTS } from '../../formats/peft-config';
import { formatModelRef, parseModelRef, type Recipe } from '../../formats/recipe';
import type { Problems } from '../../inputs/problems';
import type { RankChoice } from '../../reports/lora';
import type { MergeMethod } from '../method';
import type { Refuse } from './adapter-contributors';
import { baseRef } from './adapter-output';
import { cardOf } from './extras';
import type { Plan } from './plan';
import { bytesToDownload } from './plan-bytes';
import type { OpenByPath } from './recipe-models';
import { asModels } from './solved-factors';

/** Share of the change that is kept where the recipe says nothing, and the most ranks that it takes. */
const USUAL_ENERGY = 0.95;
const MOST_RANK = 128;

/** @throws AmalgamError `Canceled` only */
export async function planCut(
  recipe: Recipe,
  method: MergeMethod,
  open: OpenByPath,
  problems: Problems,
  refuse: Refuse,
  planModels: (recipe: Recipe) => Promise<Plan>,
  cached: ReadonlyMap<string, number>,
): Promise<Omit<Plan, 'recipe'> | undefined> {
  if (await hasImageLora(recipe, open)) {
    const how = Object.keys(COMBINATIONS_OF).join(', ');
    refuse(
      'LoRAs of image models become a LoRA by their factors, not by the change of a base.',
      `Choose merge_method ${how}, and no energy or merged_svd; rank cuts the result.`,
    );
    return undefined;
  }
  const named = baseRef(recipe);
  const base = recipe.baseModel ?? (named && formatModelRef({ model: named }));
  if (base === undefined) {
    refuse('A LoRA is the change of a base, and the recipe names none.', 'Name it as base_model.');
  }
  if (recipe.slices) {
    refuse(
      'Slices make a model of other layers, which no LoRA leads to.',
      'List whole models, or set output: model.',
    );
  }
  if (recipe.amalgam.gguf !== undefined) {
    refuse(
      'The GGUF file of a LoRA is made of a finished one, and this one is cut while it is written.',
      'Leave gguf out, and convert the result in LoRA, or by amalgam lora base+DIR --format gguf --out FOLDER.',
    );
  }
  if (base === undefined || problems.hasErrors()) return undefined;
  const { baseModel, ...rest } = recipe;
  const plan = await planModels(asModels(method.base === 'none' || baseModel === undefined ? rest : recipe));
  for (const problem of plan.problems) problems.add(problem);
  if (problems.hasErrors()) return undefined;
  noteCut(problems);
  const { rank, energy } = recipe.amalgam;
  const choice: RankChoice =
    rank !== undefined && energy === undefined
      ? { kind: 'rank', rank }
      : { kind: 'energy', share: energy ?? USUAL_ENERGY };
  const maxRank = rank ?? MOST_RANK;
  const bytes = mostBytes(plan, maxRank);
  const { recipe: _, vocabulary: __, ...shared } = plan;
  const opened = await open(base);
  // a method without a base does not read it
  const files =
    opened.kind === 'checkpoint' && !plan.inputs.some(({ folder }) => folder === opened.path)
      ? opened.weightFiles
      : [];
  const unread = files.map((file) => [opened.folder, file] as const);
  const largest = plan.tensors.reduce(
    (most, { copy, elements }) => (copy ? most : Math.max(most, elements)),
    0,
  );
  return {
    ...shared,
    problems: problems.list(),
    shards: [{ file: ADAPTER_WEIGHTS, tensors: [], header: new Uint8Array(), byteLength: bytes }],
    extras: [
      { path: 'adapter_config.json', content: { text: '{}' } },
      ...(await cardOf(recipe, method, new Map([[base, opened]]), 'peft', problems)),
    ],
    bytesToDownload: plan.bytesToDownload + bytesToDownload(unread, cached),
    bytesToWrite: bytes,
    peakBytes: plan.peakBytes + bytes + HELD * 4 * largest,
    cut: { plan, base, rank: choice, maxRank },
  };
}

/** Says that what runs before the merge is not what is written. */
export function noteCut(problems: Problems): void {
  problems.note(
    'CutWhenWritten',
    'What is predicted, tried and measured here is the merge before its change is cut to a LoRA.',
    'Open base+LoRA after the merge to measure what it keeps.',
  );
}

/** Merged tensors in F32 that are held at once, while one is decomposed and the next is merged. */
const HELD = 4;

async function hasImageLora({ models = [] }: Recipe, open: OpenByPath): Promise<boolean> {
  for (const { model } of models) {
    const { model: base, adapter } = parseModelRef(model);
    const opened = await open(formatModelRef({ model: adapter ?? base })).catch(() => undefined);
    if (opened?.kind === 'adapter' && opened.image) return true;
  }
  return false;
}

/** Bytes of factors in F32 of all matrices that change, at this rank, and of all else that does. */
function mostBytes({ tensors }: Plan, rank: number): number {
  return tensors.reduce((sum, { copy, shape, elements }) => {
    if (copy) return sum;
    const [rows = 1, cols = 1] = shape;
    const factors = shape.length === 2 ? Math.min(rank, rows, cols) * (rows + cols) : elements;
    return sum + 4 * factors;
  }, 0);
}
