/** The statistics pass of the fake worker: task vectors drawn from a hash of names, in the shape of real ones. */

import type {
  DeltaStatistics,
  DeltaStatisticsProgress,
  DeltaStatisticsReport,
} from '../reports/delta-statistics';
import type { PlanReport, PlanTensor } from '../reports/plan';
import { chance } from './worker-plan.test.fixture';

/** Rows and columns of a sample; of very many tensors fewer, as in the engine. */
const SAMPLE = { side: 32, least: 16, tensors: 1000 };
/** Bits of |τ| a bin stands for; as in the engine's histograms. */
const BIN_SHIFT = 20;

export function pretendStatistics(
  plan: PlanReport,
  onProgress: (progress: DeltaStatisticsProgress) => void,
): DeltaStatisticsReport {
  const changed = plan.tensors.filter((t) => t.contributors.length > 0);
  const side = changed.length > SAMPLE.tensors ? SAMPLE.least : SAMPLE.side;
  const tensors = changed.map((t) => statisticsOf(plan, t, side));
  onProgress({
    phase: 'measuring',
    item: tensors.at(-1)?.name ?? '',
    tensorsDone: tensors.length,
    tensors: tensors.length,
    bytesDone: 1,
    bytes: 1,
    bytesPerSecond: 1,
    secondsLeft: 0,
    stages: { read: 0, upload: 0, compute: 0, readback: 0, write: 0 },
    finished: tensors,
  });
  return { tensors, engine: 'cpu', adapter: 'typed arrays', seconds: 0.1 };
}

function statisticsOf(plan: PlanReport, tensor: PlanTensor, side: number): DeltaStatistics {
  const size = Math.min(tensor.elements, side * side);
  const changes = plan.contributors.map((id, index) => {
    const scale = tensor.contributors.includes(index) ? 0.002 * (0.4 + chance(tensor.name + id)) : 0;
    return Float32Array.from({ length: size }, (_, e) => scale * bell(e, index));
  });
  const base = Float32Array.from({ length: size }, (_, e) => 0.02 * bell(e, 99));
  const vectors = [base, ...changes];
  const times = tensor.elements / size;
  const { name, layer, module, shape, dtype, elements } = tensor;
  return {
    name,
    layer,
    module,
    shape,
    dtype,
    elements,
    products: vectors.map((a) => vectors.map((b) => times * a.reduce((sum, v, e) => sum + v * b[e]!, 0))),
    contributors: plan.contributors.map((id, index) => ({
      id,
      histogram: histogramOf(changes[index]!, times),
    })),
    sample: { rows: Math.ceil(size / side), cols: Math.min(side, size), base, changes },
    nonFinite: 0,
  };
}

/** Something like a normal distribution: the sum of a few even ones. */
function bell(e: number, model: number): number {
  let sum = 0;
  for (let k = 1; k <= 6; k++) sum += (((e + 1) * Math.sqrt(2 + k * 3 + model * 7)) % 1) - 0.5;
  return sum;
}

function histogramOf(values: Float32Array, times: number): { first: number; counts: Uint32Array } {
  const keys = new Uint32Array(values.buffer).map((word) => (word & 0x7fffffff) >>> BIN_SHIFT);
  const first = keys.reduce((a, b) => Math.min(a, b), 2047);
  const counts = new Uint32Array(keys.reduce((a, b) => Math.max(a, b), 0) - first + 1);
  for (const key of keys) counts[key - first]! += Math.round(times);
  return { first, counts };
}
