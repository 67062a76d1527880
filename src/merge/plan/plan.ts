/**
 * The plan: what a run will do, known from headers and configs alone. Every output tensor, who contributes to it and
 * how its values are obtained, the resolved parameters, the shards, the bytes, and every mismatch with its remedy.
 */

import { AmalgamError } from '../../errors';
import type { Dtype } from '../../formats/dtype';
import type { Recipe } from '../../formats/recipe';
import { formatRecipe } from '../../formats/recipe-format';
import type { GgufPlan } from '../../gguf/gguf-plan';
import type { TensorRef, TensorView } from '../../inputs/tensor-view';
import type { TensorRole } from '../../models/tensor-role';
import type { RankChoice } from '../../reports/lora';
import type { PlanProblem, TensorOutline, VocabularyInfo } from '../../reports/plan';
import type { ShardPlan } from '../../write/shard-plan';
import type { Prepared } from '../tensor/prepared';

export interface TensorPlan {
  name: string;
  shape: readonly number[];
  elements: number;
  /** Dtype written; for a copied tensor any dtype. */
  dtype: Dtype;
  role: TensorRole;
  /** Set when the bytes go through untouched. */
  copy?: TensorRef;
  /** True where `include` and `exclude` leave the tensor as the base has it. */
  leftOut?: boolean;
  base?: TensorView;
  /** One entry per contributor of this tensor, in recipe order, with its resolved parameters. */
  models: { id: string; view: TensorView; parameters: ResolvedParameters }[];
  /** Ids of the contributors that its one view is made of, where they are several: factors of a merged adapter. */
  madeOf?: readonly string[];
  /** Method-wide parameters resolved for this tensor. */
  parameters: ResolvedParameters;
  /** Method of this tensor: the recipe's. */
  method: string;
}

export type ResolvedParameters = Readonly<Record<string, number | boolean | string>>;

export interface Plan {
  recipe: Recipe;
  /** Recipe of a tool that made the plan, and its key in the metadata; `recipe` then only says how it is written. */
  madeBy?: { key: string; text: string };
  problems: PlanProblem[];
  base?: string;
  contributors: string[];
  tensors: TensorPlan[];
  /** Filled only when the plan has no errors; empty where only GGUF is written. */
  shards: ShardPlan[];
  /** Of an image model: the file of each tensor and its name there, as the base has them. */
  places?: ReadonlyMap<string, { file: string; key: string }>;
  /** File of an adapter's weights where it is not PEFT's. */
  adapterFile?: string;
  /** The GGUF file that is written beside the shards, or instead of them. */
  gguf?: GgufPlan;
  /** Small files written beside the shards: path → text or bytes read from a model folder. */
  extras: { path: string; content: { text: string } | { folder: string; file: string } }[];
  /** Every weight file the run reads. */
  inputs: { folder: string; file: string; byteLength: number; readBytes: number }[];
  /**
   * Set where the factors of an adapter are solved from how models use them: the merge of models that it stands for, whose
   * calibration it is, and what takes the result before factors are read.
   */
  calibration?: { plan: Plan; take(prepared: Prepared): void };
  /** Set where the change of the merge of models is cut to a LoRA of the base when it is written; `tensors` are then that merge's. */
  cut?: { plan: Plan; base: string; rank: RankChoice; maxRank: number };
  /** Layers of the output. */
  layers: number;
  /** Who has which vocabulary, and what the output has. */
  vocabulary?: VocabularyInfo;
  /** Bytes of Hub files that are not in the cache yet; files come whole. */
  bytesToDownload: number;
  bytesToRead: number;
  bytesToWrite: number;
  /** Estimated memory of the run at its peak, device and worker together. */
  peakBytes: number;
}

/** What the output is made by, as text, with its key in the metadata. */
export function originText({ recipe, madeBy }: Pick<Plan, 'recipe' | 'madeBy'>): {
  key: string;
  text: string;
} {
  return madeBy ?? { key: 'recipe', text: formatRecipe(recipe) };
}

/** What a report says of every tensor. */
export function tensorOutline({ name, role, shape, dtype, elements }: TensorPlan): TensorOutline {
  const { layer, stack, module } = role;
  return { name, layer, ...(stack !== undefined && { stack }), module, shape: [...shape], dtype, elements };
}

/** @throws AmalgamError `PlanHasErrors` with the first error's words and remedy */
export function requireClean(plan: Plan): void {
  const errors = plan.problems.filter((p) => p.severity === 'error');
  const first = errors[0];
  if (!first) return;
  const more = errors.length > 1 ? ` (and ${errors.length - 1} more)` : '';
  throw new AmalgamError('PlanHasErrors', `${first.message}${more}`, first.remedy);
}
