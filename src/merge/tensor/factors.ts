/** The small factors of a contributor's update, on the device: L [rows, rank] and R [rank, cols] in f32. */
import type { ComputeEngine, EngineBuffer } from '../../compute/engine';
import { exact, exactFloats } from '../../compute/exact';
import { decodeToF32 } from '../../formats/half';
import type { LowRank, TensorRef, TensorView } from '../inputs/tensor-view';
import type { TensorPlan } from '../plan/plan';
import { columns, type ReadTensor, weightDtype } from './read-tensor';

export interface Factors {
  left: EngineBuffer;
  right: EngineBuffer;
  rank: number;
  cols: number;
  scale: number;
  /** DoRA magnitude, one per row. */
  magnitude?: Float32Array;
  close(): void;
}

/**
 * Loads the factors of a view, or undefined where it has none. A `lora_bias` addend b with scale s is the rank-1
 * update s · [1] · b. `transposed` layouts (Conv1D, embeddings) swap: L = Aᵀ, R = Bᵀ.
 */
export async function loadFactors(
  view: TensorView,
  plan: TensorPlan,
  engine: ComputeEngine,
  read: ReadTensor,
): Promise<Factors | undefined> {
  if (view.addend) {
    const right = await readF32(view.addend.tensor, read);
    return upload(engine, new Float32Array([1]), right, 1, right.length, view.addend.scale);
  }
  if (!view.lowRank) return undefined;
  const { rank, scale, magnitude } = view.lowRank;
  const [{ left, right }, m] = await Promise.all([
    loadFactorValues(view.lowRank, read),
    magnitude ? readF32(magnitude, read) : undefined,
  ]);
  const factors = upload(engine, left, right, rank, columns(plan), scale);
  return m ? { ...factors, magnitude: m } : factors;
}

/** The factors as they multiply the stored weight [rows, cols]: L [rows, rank] and R [rank, cols], row after row. */
export async function loadFactorValues(
  { a, b, rank, layout }: LowRank,
  read: ReadTensor,
): Promise<{ left: Float32Array<ArrayBuffer>; right: Float32Array<ArrayBuffer> }> {
  const [aValues, bValues] = await Promise.all([readF32(a, read), readF32(b, read)]);
  if (layout === 'linear') return { left: bValues, right: aValues };
  return { left: transpose(aValues, rank), right: transpose(bValues, bValues.length / rank) };
}

function upload(
  engine: ComputeEngine,
  left: Float32Array<ArrayBuffer>,
  right: Float32Array<ArrayBuffer>,
  rank: number,
  cols: number,
  scale: number,
): Factors {
  const l = engine.allocate(left.byteLength, 'left factor');
  const r = engine.allocate(right.byteLength, 'right factor');
  engine.write(l, 0, new Uint8Array(exactFloats(left).buffer));
  engine.write(r, 0, new Uint8Array(exactFloats(right).buffer));
  return {
    left: l,
    right: r,
    rank,
    cols,
    scale: exact(scale),
    close() {
      engine.free(l);
      engine.free(r);
    },
  };
}

async function readF32(ref: TensorRef, read: ReadTensor): Promise<Float32Array<ArrayBuffer>> {
  const dtype = weightDtype(ref);
  const bytes = await read(ref, 0, ref.end - ref.begin);
  const values = new Float32Array(ref.shape.reduce((x, y) => x * y, 1));
  decodeToF32(bytes, dtype, values);
  return values;
}

/** [rows, n/rows] → [n/rows, rows]. */
function transpose(values: Float32Array, rows: number): Float32Array<ArrayBuffer> {
  const cols = values.length / rows;
  const out = new Float32Array(values.length);
  for (let i = 0; i < rows; i++) for (let j = 0; j < cols; j++) out[j * rows + i] = values[i * cols + j]!;
  return out;
}
