/** Low-rank updates of fused expert weights (PEFT's `target_parameters`), on checkpoints that keep them fused or apart. */
import { tensorKey } from '../models/families';
import type { Adapter, AdapterUpdate } from './adapter';
import { changedRows, madeTensor } from './derived';
import { misfit } from './misfit';
import type { Model } from './model';
import type { Problems } from './problems';

/** Families whose fused experts are [experts, in, out] (`is_transposed` in transformers). */
const IN_OUT: readonly string[] = ['gpt_oss', 'llama4', 'llama4_text'];
/** Projections of a fused parameter, in the order of its outputs. */
const PROJECTIONS: Readonly<Record<string, readonly string[]>> = {
  gate_up_proj: ['gate_proj', 'up_proj'],
  down_proj: ['down_proj'],
};

/**
 * Updates the experts of one layer. For expert e, A is rows [e·r, (e+1)·r) of lora_A, and B every n-th column of lora_B
 * from e on (PEFT tuners/lora/layer.py, ParamWrapper.get_delta_weight).
 *
 * @param path key of the parameter: `layers.0.mlp.experts.gate_up_proj`
 * @returns names the base does not have
 */
export function updateExperts(
  model: Model,
  adapter: Adapter,
  path: string,
  { a, b, rank, scale, experts = 1 }: AdapterUpdate,
  problems: Problems,
): string[] {
  const [outputs, inputs] = [b.shape[0]!, a.shape[1]!];
  /** B of an expert, [outputs, rank]. */
  const column = (values: Float32Array, e: number, o: number, k: number) =>
    values[o * rank * experts + k * experts + e]!;
  const fused = model.tensors.get(path);
  if (fused) {
    const [count, rows, columns] = fused.shape as [number, number, number];
    const inOut = rows === inputs && columns === outputs;
    const turned = inOut && (inputs !== outputs || IN_OUT.includes(model.checkpoint.config?.modelType ?? ''));
    if (count !== experts || !(inOut || (rows === outputs && columns === inputs))) {
      problems.add(misfit(adapter, path, `factors of ${experts} experts, [${b.shape}] · [${a.shape}]`));
      return [];
    }
    const origin = changedRows(fused.view.origin, columns, { a, b }, ({ a: A, b: B }) => (row, index) => {
      const [e, i] = [Math.floor(index / rows), index % rows];
      for (let c = 0; c < columns; c++) {
        const [o, n] = turned ? [c, i] : [i, c];
        let sum = 0;
        for (let k = 0; k < rank; k++) sum += column(B!, e, o, k) * A![(e * rank + k) * inputs + n]!;
        row[c]! += scale * sum;
      }
    });
    model.tensors.set(path, { ...fused, view: { ...fused.view, origin } });
    return [];
  }
  return updateSeparate(model, adapter, path, { a, b, rank, scale, experts, column }, problems);
}

interface Pairs extends Pick<AdapterUpdate, 'a' | 'b' | 'rank' | 'scale'> {
  experts: number;
  column(values: Float32Array, expert: number, output: number, k: number): number;
}

/** Experts that are stored apart: an ordinary low-rank update each, gate and up with half of the outputs. */
function updateSeparate(
  model: Model,
  adapter: Adapter,
  path: string,
  { a, b, rank, scale, experts, column }: Pairs,
  problems: Problems,
): string[] {
  const at = path.lastIndexOf('.');
  const projections = PROJECTIONS[path.slice(at + 1)] ?? [];
  const inputs = a.shape[1]!;
  const outputs = b.shape[0]! / projections.length;
  const missing: string[] = [];
  for (let e = 0; e < experts; e++) {
    for (const [half, projection] of projections.entries()) {
      const name = tensorKey(`${path.slice(0, at)}.${e}.${projection}.weight`, model.checkpoint.family);
      const tensor = model.tensors.get(name);
      if (!tensor) missing.push(name);
      else if (tensor.shape[0] !== outputs || tensor.shape[1] !== inputs) {
        problems.add(
          misfit(adapter, name, `factors [${b.shape}] · [${a.shape}] for a weight of [${tensor.shape}]`),
        );
      } else {
        const lowRank = {
          a: madeTensor({ a }, [rank, inputs], ({ a: A }) =>
            A!.slice(e * rank * inputs, (e + 1) * rank * inputs),
          ),
          b: madeTensor({ b }, [outputs, rank], ({ b: B }) =>
            Float32Array.from({ length: outputs * rank }, (_, i) =>
              column(B!, e, half * outputs + Math.floor(i / rank), i % rank),
            ),
          ),
          rank,
          scale,
          layout: 'linear' as const,
        };
        model.tensors.set(name, { ...tensor, view: { ...tensor.view, lowRank } });
      }
    }
  }
  return missing;
}
