/**
 * The Gram merge of LoRAs as a LoRA: τ = Σ τᵢGᵢ(ΣG)⁻¹ with τᵢ = sᵢBᵢAᵢ is Σ Bᵢ·(sᵢAᵢGᵢ(ΣG)⁻¹), so every Bᵢ stays and the ranks add
 * up. The Gram matrices are those of the merge of models that it stands for, which is planned beside it.
 */
import { type Combined, type CombineSettings, combine, type LoraFactors } from '../../adapters/combine';
import type { Recipe } from '../../formats/recipe';
import type { AdapterUpdate } from '../../inputs/adapter';
import { derivedTensor } from '../../inputs/row-map';
import { readF32 } from '../../inputs/stored-tensor';
import type { ReadTensor, TensorRef } from '../../inputs/tensor-view';
import type { combinedTensors } from '../tensor/combined-factors';
import { type Prepared, requirePrepared, sharesOf, weightsOf } from '../tensor/prepared';
import type { Plan, TensorPlan } from './plan';

export interface SolvedFactors {
  calibration: NonNullable<Plan['calibration']>;
  /** Whether the merge of models has a tensor of its own for a module, by an A of its LoRAs: a tied head has none. */
  has(origin: TensorRef): boolean;
  /**
   * The merged factors of a module; outside linear layers every LoRA counts as it does in the merge of models: by how often its
   * model used a token, or like the others.
   * @param origin of an A of them
   * @param contributors place of each among those of the plan
   */
  merge(origin: TensorRef, loras: readonly LoraFactors[], contributors: readonly number[]): Promise<Combined>;
}

/** The recipe of the merge of models that a recipe of an adapter stands for. */
export function asModels(recipe: Recipe): Recipe {
  const { output: _, combination: __, rank: ___, gguf: ____, ggufOnly: _____, ...amalgam } = recipe.amalgam;
  return { ...recipe, amalgam };
}

/** @param plan of the merge of models, a clean one */
export function solvedFactors(plan: Plan): SolvedFactors {
  const byFactor = new Map<string, TensorPlan>();
  for (const tensor of plan.tensors) {
    for (const { view } of tensor.models) if (view.lowRank) byFactor.set(keyOf(view.lowRank.a), tensor);
  }
  let prepared: Prepared | undefined;
  return {
    calibration: {
      plan,
      take(found) {
        prepared = found;
      },
    },
    has: (origin) => byFactor.has(keyOf(origin)),
    async merge(origin, loras, contributors) {
      const { name, models } = byFactor.get(keyOf(origin))!;
      const found = requirePrepared(prepared, name);
      const solution = found.solution(name);
      const rows = found.rowWeights(name);
      const shares = solution || rows ? undefined : sharesOf(weightsOf(models));
      const whole = await combine(
        loras.map((lora, i) => ({ ...lora, weight: lora.weight * (shares?.[contributors[i]!] ?? 1) })),
        { combination: 'cat' },
      );
      const inputs = whole.a.length / whole.rank;
      if (solution) {
        // λ is one for all, and the scales are in what was solved
        const solved = await solution.values(0, whole.a.length);
        return { ...whole, a: solved.map((value) => value * loras[0]!.weight) };
      }
      const owners = loras.flatMap(({ rank }, i) => new Array<number>(rank).fill(contributors[i]!));
      if (rows) {
        for (const [k, owner] of owners.entries()) {
          for (let token = 0; token < inputs; token++) whole.a[k * inputs + token]! *= rows[owner]![token]!;
        }
      }
      return whole;
    },
  };
}

function keyOf({ folder, file, key }: TensorRef): string {
  return [folder, file, key].join('\n');
}

/** A and B of a module whose merge was solved from how models use their inputs; worked out together when the first is read. */
export function solvedTensors(
  place: Parameters<typeof combinedTensors>[0],
  pairs: readonly AdapterUpdate[],
  settings: CombineSettings,
  loras: Parameters<typeof combinedTensors>[3],
  contributors: readonly number[],
  solved: SolvedFactors,
): Record<'a' | 'b', TensorRef> {
  const from = pairs.flatMap(({ a, b }) => [a, b]);
  let ready: Promise<Combined> | undefined;
  const combined = (read: ReadTensor) => {
    ready ??= Promise.all(
      loras.map(async (lora, i) => ({
        ...lora,
        a: await readF32(pairs[i]!.a, read),
        b: await readF32(pairs[i]!.b, read),
      })),
    ).then(async (read) => {
      const whole = await solved.merge(pairs[0]!.a, read, contributors);
      if (settings.combination === 'gram') return whole;
      const one = { ...whole, scale: 1, weight: 1, density: 1, id: settings.name };
      return combine([one], { ...settings, combination: 'svd' });
    });
    ready.catch(() => {
      ready = undefined;
    });
    return ready;
  };
  const tensor = (side: 'a' | 'b') =>
    derivedTensor(place[side], place[side].shape, from, async (read) => {
      const values = (await combined(read))[side];
      // the other side has been read, or is read from what it finds then
      if (side === 'b') ready = undefined;
      return async (begin, end) => values.slice(begin, end);
    });
  return { a: tensor('a'), b: tensor('b') };
}
