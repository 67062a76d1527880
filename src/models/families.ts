import { commonName } from './aliases';
import { bert, distilbert, modernbert, roberta } from './families/encoders';
import { bloom, gpt2, gptLinear, gptNeox, mpt, opt } from './families/gpt';
import { llama } from './families/llama';
import { backbone } from './families/mamba';
import type { Family } from './family';

/** Every family that is known by name. Adding one is one literal and one line here. */
export const families: readonly Family[] = [
  llama,
  gpt2,
  gptLinear,
  bloom,
  gptNeox,
  opt,
  mpt,
  backbone,
  bert,
  roberta,
  distilbert,
  modernbert,
];

const byModelType: ReadonlyMap<string, Family> = new Map(
  families.flatMap((family) => Object.keys(family.modelTypes).map((type) => [type, family] as const)),
);

/** The family of a `model_type`, or undefined for one that is not listed. */
export function familyOf(modelType: string | undefined): Family | undefined {
  return modelType === undefined ? undefined : byModelType.get(modelType);
}

/**
 * The name under which a tensor is compared across checkpoints: without the family's prefix, which the bare model is
 * saved without (`h.0.attn.c_attn.weight` and `transformer.h.0.attn.c_attn.weight` are the same tensor).
 */
export function canonicalName(name: string, family: Family | undefined): string {
  return family && name.startsWith(family.prefix) ? name.slice(family.prefix.length) : name;
}

/** The key of a tensor, or of the beginning of its name, among those of other checkpoints and of adapters. */
export function tensorKey(name: string, family: Family | undefined): string {
  return commonName(canonicalName(name, family));
}
