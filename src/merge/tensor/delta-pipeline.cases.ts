/**
 * A synthetic tensor with contributors of every kind, and one function that merges it on a given engine: shared by the
 * Node test (the processor against the f64 oracle) and the browser test (WebGPU against the processor).
 */
import type { Backend } from '../../backend/backend';
import { BLOCK } from '../../backend/kernel';
import { philox } from '../../backend/philox';
import type { Dtype } from '../../formats/dtype';
import { decodeToF32, encodeFromF32 } from '../../formats/half';
import type { TensorRef, TensorView } from '../../inputs/tensor-view';
import type { DeltaPreset } from '../method';
import type { TensorPlan } from '../plan/plan';
import { mergeDelta } from './delta-pipeline';
import type { OracleModel } from './delta-pipeline.oracle';
import { openTask } from './tensor-task';
import { openWorkspace } from './workspace';

const COLS = 211;
const RANK = 6;

export const PRESETS: [string, DeltaPreset][] = (
  [
    ['task arithmetic', 'all', 'none', 'none', false],
    ['ties', 'top-k', 'none', 'sum', true],
    ['ties rescaled', 'top-k', 'l1', 'sum', false],
    ['dare_linear', 'random', 'l1', 'none', false],
    ['dare_linear paper', 'random', '1/density', 'none', false],
    ['dare_ties', 'random', 'l1', 'sum', false],
    ['dare_ties normalized', 'random', '1/density', 'sum', true],
  ] as const
).map(([name, select, rescale, consensus, normalize]) => [
  name,
  { select, rescale, consensus, normalize, lambda: 0.9 },
]);
PRESETS.push(['stitched', { ...PRESETS[1]![1], consensus: 'none', divisor: 'count' }]);

const known = new Map<string, Float32Array<ArrayBuffer>>();

/** Bell-shaped numbers, drawn once. */
export function noise(n: number, seed: number, scale: number): Float32Array<ArrayBuffer> {
  const key = `${n} ${seed} ${scale}`;
  const words = new Uint32Array(4);
  const values =
    known.get(key) ??
    Float32Array.from({ length: n }, (_, i) => {
      philox(i, 0, seed, 9, words);
      // a sum of uniforms: bell-shaped, no transcendental functions
      return ((words[0]! + words[1]! + words[2]! + words[3]!) / 2 ** 32 - 2) * scale;
    });
  known.set(key, values);
  return values;
}

/** `more` full models beside three contributors of all kinds, in fewer rows. Weights kept by dtype; the full fine-tune shares a third of its values with the base, so that τ has exact zeros. */
export function syntheticTensor(dtype: 'F32' | 'BF16' | 'F16', more = 0) {
  // five blocks and a part of one, or one and a part
  const rows = more > 0 ? 23 : 97;
  const elements = rows * COLS;
  const store = new Map<TensorRef, Uint8Array<ArrayBuffer>>();
  const put = (key: string, values: Float32Array, kind: Dtype, shape: number[]): TensorRef => {
    const bytes = new Uint8Array(values.length * (kind === 'F32' ? 4 : 2));
    encodeFromF32(values, kind as 'F32' | 'BF16' | 'F16', bytes);
    const ref = {
      folder: key,
      file: 'model.safetensors',
      key,
      dtype: kind,
      shape,
      begin: 0,
      end: bytes.length,
    };
    store.set(ref, bytes);
    return ref;
  };
  const base = noise(elements, 1, 0.05);
  const tuned = noise(elements, 2, 0.01).map((x, i) => (i % 3 === 0 ? base[i]! : base[i]! + x));
  const origin = put('base', base, dtype, [rows, COLS]);
  const full: TensorView = { origin: put('full', tuned, dtype, [rows, COLS]), onBase: false };
  const adapter: TensorView = {
    origin,
    onBase: true,
    lowRank: {
      a: put('a', noise(RANK * COLS, 3, 0.1), 'F32', [RANK, COLS]),
      b: put('b', noise(rows * RANK, 4, 0.1), 'F32', [rows, RANK]),
      rank: RANK,
      scale: 2,
      layout: 'linear',
    },
  };
  const untouched: TensorView = { origin, onBase: true };
  const read = async (ref: TensorRef, begin: number, end: number) => store.get(ref)!.slice(begin, end);
  const values = (ref: TensorRef) => {
    const out = new Float32Array(ref.shape.reduce((x, y) => x * y, 1));
    decodeToF32(store.get(ref)!, ref.dtype as 'F32', out);
    return out;
  };
  const w0 = values(origin);
  const w1 = values(full.origin);
  const a = values(adapter.lowRank!.a);
  const b = values(adapter.lowRank!.b);
  const lowRankTau = new Float64Array(elements).map((_, e) => {
    let sum = 0;
    for (let k = 0; k < RANK; k++) sum += b[Math.floor(e / COLS) * RANK + k]! * a[k * COLS + (e % COLS)]!;
    return 2 * sum;
  });
  const models: { view: TensorView; oracle: OracleModel }[] = [
    {
      view: full,
      oracle: { id: 'full', weight: 0.7, density: 0.4, tau: Float64Array.from(w1, (x, e) => x - w0[e]!) },
    },
    { view: adapter, oracle: { id: 'base+lora', weight: 0.5, density: 0.25, tau: lowRankTau } },
    { view: untouched, oracle: { id: 'other', weight: 0.3, density: 0.5, tau: new Float64Array(elements) } },
  ];
  for (let i = 0; i < more; i++) {
    const view = {
      origin: put(`more ${i}`, noise(elements, 10 + i, 0.05), dtype, [rows, COLS]),
      onBase: false,
    };
    const tau = Float64Array.from(values(view.origin), (x, e) => Math.fround(x - w0[e]!));
    models.push({ view, oracle: { id: `more ${i}`, weight: 0.1 + 0.05 * i, density: 0.6, tau } });
  }
  const plan: TensorPlan = {
    name: 'model.layers.0.mlp.up_proj.weight',
    shape: [rows, COLS],
    elements,
    dtype,
    role: { layer: 0, module: 'mlp.up_proj', kind: 'linear' },
    base: { origin, onBase: true },
    models: models.map(({ view, oracle }) => ({
      id: oracle.id,
      view,
      parameters: { weight: oracle.weight, density: oracle.density },
    })),
    parameters: {},
    method: 'any',
  };
  return { plan, read, base: Float64Array.from(w0), models: models.map((m) => m.oracle) };
}

/** Merges the tensor in tiles of `blocks` blocks. */
export async function mergeOn(
  engine: Backend,
  tensor: ReturnType<typeof syntheticTensor>,
  preset: DeltaPreset,
  blocks: number,
) {
  const work = openWorkspace(engine, tensor.plan.models.length, blocks * BLOCK);
  const task = openTask(tensor.plan, 'delta', work, tensor.read);
  const pieces: Uint8Array[] = [];
  const statistics = await mergeDelta(task, { preset, seed: 42, nonFinite: 'stop' }, async (bytes) => {
    pieces.push(bytes);
  });
  task.close();
  work.close();
  const bytes = new Uint8Array(pieces.reduce((n, p) => n + p.length, 0));
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return { bytes, statistics };
}
