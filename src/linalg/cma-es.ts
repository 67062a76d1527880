/**
 * CMA-ES, the covariance matrix adaptation evolution strategy, with the default settings of Hansen, "The CMA Evolution
 * Strategy: A Tutorial" (arXiv:1604.00772): positive recombination weights, rank-one and rank-μ update, cumulative step sizes.
 * In f64, for a handful of dimensions.
 */
import { column, zeroColumns } from './columns';
import { jacobiSvd } from './jacobi';

interface CmaEs {
  /** Candidates of one generation. */
  readonly population: number;
  /** The candidates of the next generation. @param normals population · dimensions standard normal numbers */
  ask(normals: Float64Array): Float64Array[];
  /** Takes the costs of the candidates of the last {@link CmaEs.ask}, in their order. */
  tell(costs: readonly number[]): void;
  /** Center of the distribution, and its step size. */
  readonly mean: Float64Array;
  readonly sigma: number;
}

/** @param sigma step size in the units of the variables, about a third of where the optimum may be */
export function openCmaEs(start: readonly number[], sigma: number): CmaEs {
  const n = start.length;
  const population = 4 + Math.floor(3 * Math.log(n));
  const parents = Math.floor(population / 2);
  const raw = Array.from({ length: parents }, (_, i) => Math.log((population + 1) / 2) - Math.log(i + 1));
  const total = raw.reduce((a, b) => a + b, 0);
  const weights = raw.map((w) => w / total);
  const effective = 1 / weights.reduce((sum, w) => sum + w * w, 0);
  const stepRate = (effective + 2) / (n + effective + 5);
  const damping = 1 + 2 * Math.max(0, Math.sqrt((effective - 1) / (n + 1)) - 1) + stepRate;
  const pathRate = (4 + effective / n) / (n + 4 + (2 * effective) / n);
  const oneRate = 2 / ((n + 1.3) ** 2 + effective);
  const manyRate = Math.min(
    1 - oneRate,
    (2 * (0.25 + effective + 1 / effective - 2)) / ((n + 2) ** 2 + effective),
  );
  /** Mean length of a vector of n standard normal numbers. */
  const length = Math.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n));

  let step = sigma;
  let generation = 0;
  let mean = Float64Array.from(start);
  const covariance = Float64Array.from({ length: n * n }, (_, e) => +(e % (n + 1) === 0));
  const stepPath = new Float64Array(n);
  const path = new Float64Array(n);
  let axes = eigen(covariance, n);
  let asked: { z: Float64Array; y: Float64Array }[] = [];

  return {
    population,
    get mean() {
      return mean;
    },
    get sigma() {
      return step;
    },
    ask(normals) {
      asked = Array.from({ length: population }, (_, k) => {
        const z = normals.slice(k * n, (k + 1) * n);
        return { z, y: axes.stretch(z) };
      });
      return asked.map(({ y }) => mean.map((m, i) => m + step * y[i]!));
    },
    tell(costs) {
      generation++;
      const order = [...asked.keys()].sort((a, b) => costs[a]! - costs[b]! || a - b).slice(0, parents);
      const combined = (of: (one: (typeof asked)[number]) => Float64Array) =>
        Float64Array.from({ length: n }, (_, i) =>
          order.reduce((sum, k, rank) => sum + weights[rank]! * of(asked[k]!)[i]!, 0),
        );
      const y = combined((one) => one.y);
      const z = axes.rotate(combined((one) => one.z));
      mean = mean.map((m, i) => m + step * y[i]!);
      const gain = Math.sqrt(stepRate * (2 - stepRate) * effective);
      for (let i = 0; i < n; i++) stepPath[i] = (1 - stepRate) * stepPath[i]! + gain * z[i]!;
      const far = Math.hypot(...stepPath) / Math.sqrt(1 - (1 - stepRate) ** (2 * generation));
      const steady = far < (1.4 + 2 / (n + 1)) * length ? 1 : 0;
      const pathGain = steady * Math.sqrt(pathRate * (2 - pathRate) * effective);
      for (let i = 0; i < n; i++) path[i] = (1 - pathRate) * path[i]! + pathGain * y[i]!;
      const kept = 1 - oneRate - manyRate + (1 - steady) * oneRate * pathRate * (2 - pathRate);
      for (let i = 0; i < n; i++) {
        for (let j = 0; j < n; j++) {
          const many = order.reduce(
            (sum, k, rank) => sum + weights[rank]! * asked[k]!.y[i]! * asked[k]!.y[j]!,
            0,
          );
          const at = i * n + j;
          covariance[at] = kept * covariance[at]! + oneRate * path[i]! * path[j]! + manyRate * many;
        }
      }
      step *= Math.exp((stepRate / damping) * (Math.hypot(...stepPath) / length - 1));
      axes = eigen(covariance, n);
    },
  };
}

/** C = B·D²·Bᵀ: z ↦ B·D·z, and z ↦ B·z. */
function eigen(covariance: Float64Array, n: number) {
  const columns = zeroColumns(n, n);
  columns.data.set(covariance);
  const { values, j } = jacobiSvd(columns, true);
  const rotate = (z: Float64Array) => {
    const out = new Float64Array(n);
    for (let k = 0; k < n; k++) {
      const axis = column(j!, k);
      for (let i = 0; i < n; i++) out[i]! += axis[i]! * z[k]!;
    }
    return out;
  };
  return { rotate, stretch: (z: Float64Array) => rotate(z.map((v, k) => Math.sqrt(values[k]!) * v)) };
}
