/**
 * Samples of what models changed from their base: a few rows of a few tensors of each, by ranges of their files, so that a merge
 * can be judged before anything large is downloaded. What it says of a merge is in docs/predictions.md.
 */
import { DTYPE_BITS, isWeightDtype } from '../../formats/dtype';
import { decodeToF32 } from '../../formats/half';
import type { OpenModels } from '../../host/models';
import type { LowRank, TensorRef, TensorView } from '../../inputs/tensor-view';
import { type Columns, column, dot } from '../../linalg/columns';
import { smallSvd } from '../../linalg/small-svd';
import type { ChangePair, SampledChanges } from '../../reports/sampled-changes';
import type { Plan, TensorPlan } from '../plan/plan';

/** Tensors and rows of each that are read, and directions that are compared. */
const TENSORS = 8;
const ROWS = 16;
const DIRECTIONS = 8;
/** Share of a change that counts as what was changed most. */
const LARGEST = 0.2;
/** Steps that spread over any period, of layers or of modules (Weyl's sequence of the golden ratio). */
const spread = (i: number) => (i * 0.6180339887) % 1;

interface Sample {
  base: Float32Array;
  /** By contributor, [rows, cols]; undefined where it leaves the tensor alone. */
  changes: (Float32Array | undefined)[];
  cols: number;
}

/** Measures samples; null where there is no base, fewer than two contributors, or nothing that can be read in part. @throws what the sources throw */
export async function sampleChanges(
  plan: Plan,
  models: OpenModels,
  signal?: AbortSignal,
): Promise<SampledChanges | null> {
  const fitting = plan.tensors.filter(isReadable);
  if (fitting.length === 0 || plan.contributors.length < 2) return null;
  const count = Math.min(TENSORS, fitting.length);
  const chosen = Array.from(
    { length: count },
    (_, i) => fitting[Math.floor(((i + spread(i)) / count) * fitting.length)]!,
  );
  let bytes = 0;
  const read: ReadRows = async (ref, first, rows, width = ref.shape[1]!) => {
    const { file } = models.file(ref.folder, ref.file);
    const size = (width * DTYPE_BITS[ref.dtype]) / 8;
    const begin = ref.begin + first * size;
    bytes += rows * size;
    const values = new Float32Array(rows * width);
    const raw = await file.open().read(begin, begin + rows * size, signal);
    if (isWeightDtype(ref.dtype)) decodeToF32(raw, ref.dtype, values);
    return values;
  };
  const samples = await Promise.all(
    chosen.map(async ({ shape, base, models: own }, i): Promise<Sample> => {
      const rows = Math.min(ROWS, shape[0]!);
      const first = Math.floor(spread(i) * (shape[0]! - rows + 1));
      const valuesOf = async ({ origin, lowRank }: TensorView) => {
        const values = await read(origin, first, rows);
        if (lowRank) await addProduct(values, lowRank, read, first, rows);
        return values;
      };
      const stored = await valuesOf(base!);
      const changes = await Promise.all(
        plan.contributors.map(async (id) => {
          const model = own.find((one) => one.id === id);
          return model && (await valuesOf(model.view)).map((value, e) => value - stored[e]!);
        }),
      );
      return { base: stored, changes, cols: shape[1]! };
    }),
  );
  return { bytes, tensors: count, ...measure(samples, plan.contributors) };
}

/** A matrix of a block of which a few rows can be read of every version. */
function isReadable({ copy, base, models, shape, role }: TensorPlan): boolean {
  if (copy || !base || models.length < 2 || shape.length !== 2 || role.layer === null) return false;
  return [base, ...models.map(({ view }) => view)].every(({ origin, lowRank, addend }) => {
    const refs = [
      origin,
      ...(lowRank ? [lowRank.a, lowRank.b, ...(lowRank.magnitude ? [lowRank.magnitude] : [])] : []),
    ];
    const isPlain = refs.every(({ rows, derived, dtype }) => !rows && !derived && isWeightDtype(dtype));
    return isPlain && !addend && lowRank?.layout !== 'transposed';
  });
}

type ReadRows = (ref: TensorRef, first: number, rows: number, width?: number) => Promise<Float32Array>;

/** Adds rows of scale · B · A; of a DoRA each row has then its magnitude as its norm. */
async function addProduct(
  values: Float32Array,
  { a, b, rank, scale, magnitude }: LowRank,
  read: ReadRows,
  first: number,
  rows: number,
): Promise<void> {
  const cols = values.length / rows;
  const [right, left] = await Promise.all([read(a, 0, rank), read(b, first, rows)]);
  const norms = magnitude && (await read(magnitude, first, rows, 1));
  for (let r = 0; r < rows; r++) {
    const row = values.subarray(r * cols, (r + 1) * cols);
    for (let k = 0; k < rank; k++) {
      const factor = scale * left[r * rank + k]!;
      for (let c = 0; c < cols; c++) row[c]! += factor * right[k * cols + c]!;
    }
    if (!norms) continue;
    const norm = norms[r]! / Math.sqrt(row.reduce((sum, x) => sum + x * x, 0));
    for (let c = 0; c < cols; c++) row[c]! *= norm;
  }
}

/** What samples say. Pure. */
export function measure(
  samples: readonly Sample[],
  ids: readonly string[],
): Pick<SampledChanges, 'contributors' | 'pairs'> {
  const squares = (of: (sample: Sample) => Float32Array | undefined) =>
    samples.reduce((sum, sample) => sum + (of(sample)?.reduce((all, x) => all + x * x, 0) ?? 0), 0);
  const base = squares((sample) => sample.base);
  const norms = ids.map((_, i) => squares(({ changes }) => changes[i]));
  const contributors = ids.map((id, i) => ({ id, distance: Math.sqrt(norms[i]! / base) }));
  const directions = samples.map(({ changes, cols }) =>
    changes.map((change) => change && leadingDirections(change, cols)),
  );
  const pairs = ids.flatMap((_, a) =>
    ids.slice(a + 1).map((__, next): ChangePair => {
      const b = a + 1 + next;
      const both = samples.flatMap(({ changes, cols }, s) => {
        const [one, other] = [changes[a], changes[b]];
        const [va, vb] = [directions[s]![a], directions[s]![b]];
        return one && other && va && vb ? [{ one, other, cols, va, vb }] : [];
      });
      const product = both.reduce(
        (sum, { one, other }) => sum + one.reduce((all, x, e) => all + x * other[e]!, 0),
        0,
      );
      const signs = both.map(({ one, other }) => opposed(one, other));
      const ratio = (of: (one: (typeof signs)[number]) => number) =>
        signs.reduce((sum, one) => sum + of(one), 0);
      const mean = (of: (one: (typeof both)[number]) => number) =>
        both.reduce((sum, one) => sum + of(one), 0) / both.length;
      const k = ({ va, vb }: (typeof both)[number]) => Math.min(va.cols, vb.cols);
      return {
        ...{ a, b, cosine: product / Math.sqrt(norms[a]! * norms[b]!) },
        conflict: ratio(({ opposite }) => opposite) / ratio(({ all }) => all),
        overlap: mean((one) => overlapOf(one.va, one.vb, k(one))),
        chance: mean((one) => k(one) / one.cols),
      };
    }),
  );
  return { contributors, pairs };
}

/** Leading right singular vectors of rows, as columns; undefined of zeros. */
function leadingDirections(change: Float32Array, cols: number): Columns | undefined {
  if (change.every((x) => x === 0)) return undefined;
  // row after row is column after column of the transposed
  const { s, u } = smallSvd({ rows: cols, cols: change.length / cols, data: Float64Array.from(change) });
  const count = Math.min(DIRECTIONS, s.length);
  return { rows: cols, cols: count, data: u.data.slice(0, cols * count) };
}

function overlapOf(va: Columns, vb: Columns, k: number): number {
  let sum = 0;
  for (let i = 0; i < k; i++) for (let j = 0; j < k; j++) sum += dot(column(va, i), column(vb, j)) ** 2;
  return sum / k;
}

/** Elements among the largest of both, and those with opposite signs. */
function opposed(one: Float32Array, other: Float32Array): { all: number; opposite: number } {
  const least = (of: Float32Array) => of.map(Math.abs).sort()[Math.floor((1 - LARGEST) * of.length)]!;
  const [a, b] = [least(one), least(other)];
  let [all, opposite] = [0, 0];
  for (let e = 0; e < one.length; e++) {
    if (Math.abs(one[e]!) < a || Math.abs(other[e]!) < b || one[e] === 0 || other[e] === 0) continue;
    all++;
    if (one[e]! * other[e]! < 0) opposite++;
  }
  return { all, opposite };
}
