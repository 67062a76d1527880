/** The small factors of a contributor's update, on the device: L [rows, rank] and R [rank, cols] in f32. */
import type { Backend, BackendBuffer } from '../../backend/backend';
import { exact, exactFloats } from '../../backend/exact';
import { loadFactorValues, type ReadTensor, readF32 } from '../../inputs/stored-tensor';
import type { TensorView } from '../../inputs/tensor-view';

export interface Factors {
  left: BackendBuffer;
  right: BackendBuffer;
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
  engine: Backend,
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
  // of a convolution all but the outputs are columns
  const factors = upload(engine, left, right, rank, right.length / rank, scale);
  return m ? { ...factors, magnitude: m } : factors;
}

function upload(
  engine: Backend,
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
