/** Adapters of drawn numbers on a module of a model in memory, and dense matrices in f64 to say what they make of it. */
import type { Dtype } from '../src/formats/dtype';
import { memoryFolder, safetensors } from '../src/inputs/memory-models.test.support';
import { mergeInNode, type Tensors } from './merge-in-node';

export type Matrix = number[][];
/** Values by the key behind the module's path, or from the root where it begins with `base_model.`. */
export type Parts = Readonly<Record<string, { dtype?: Dtype; shape: number[]; values: number[] }>>;

export const MODULE = 'layers.0.proj';
const SECOND = 'layers.1.proj';

let state = 1;
/** Numbers of [-1, 1] that f32 holds. */
export const draw = (count: number): number[] =>
  Array.from({ length: count }, () => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return (state >>> 8) / 2 ** 23 - 1;
  });
export const drawn = (...shape: number[]) => ({ shape, values: draw(shape.reduce((a, b) => a * b, 1)) });
export const indices = (dtype: Dtype, shape: number[], below: number) => ({
  dtype,
  shape,
  values: draw(shape.reduce((a, b) => a * b, 1)).map((x) => Math.floor(((x + 1) / 2) * below) % below),
});

export const matrixOf = ({ shape: [rows, columns], values }: { shape: number[]; values: number[] }): Matrix =>
  Array.from({ length: rows! }, (_, i) => values.slice(i * columns!, (i + 1) * columns!));
export const zeros = (rows: number, columns: number): Matrix =>
  Array.from({ length: rows }, () => new Array<number>(columns).fill(0));
export const turned = (a: Matrix): Matrix => a[0]!.map((_, j) => a.map((row) => row[j]!));
export const times = (a: Matrix, b: Matrix): Matrix =>
  a.map((row) => b[0]!.map((_, j) => row.reduce((sum, x, k) => sum + x * b[k]![j]!, 0)));
export const plus = (a: Matrix, b: Matrix, scale = 1): Matrix =>
  a.map((row, i) => row.map((x, j) => x + scale * b[i]![j]!));
export const each = (a: Matrix, f: (x: number, i: number, j: number) => number): Matrix =>
  a.map((row, i) => row.map((x, j) => f(x, i, j)));

export interface Case {
  type: string;
  outputs: number;
  inputs: number;
  config?: Record<string, unknown>;
  parts: Parts;
  /** The module's weight and bias as PEFT makes them. */
  weight(W: Matrix): Matrix;
  bias?(b: Matrix, W: Matrix): Matrix;
  biasless?: boolean;
  /** GPT-2's storage, [in, out]. */
  stored?: 'in_out';
  second?: Parts;
}

export async function merged(the: Case): Promise<{ before: Tensors; after: Tensors }> {
  const file = (tensors: Parts) => {
    const bytes = safetensors(
      Object.fromEntries(
        Object.entries(tensors).map(([name, { dtype, shape }]) => [name, [dtype ?? 'F32', shape]]),
      ),
    );
    const data = Object.values(tensors).map(({ dtype, values }) =>
      dtype === 'I64'
        ? new BigInt64Array(values.map(BigInt))
        : dtype === 'I32'
          ? new Int32Array(values)
          : new Float32Array(values),
    );
    let at = bytes.length - data.reduce((n, { byteLength }) => n + byteLength, 0);
    for (const { buffer, byteLength } of data) {
      bytes.set(new Uint8Array(buffer), at);
      at += byteLength;
    }
    return bytes;
  };
  state = 7;
  const shape = the.stored ? [the.inputs, the.outputs] : [the.outputs, the.inputs];
  const base = memoryFolder('base', {
    'config.json': { model_type: 'of_this_test', architectures: ['OfThisTest'] },
    'model.safetensors': file({
      [`${MODULE}.weight`]: drawn(...shape),
      ...(the.biasless ? {} : { [`${MODULE}.bias`]: drawn(the.outputs) }),
      [`${SECOND}.weight`]: drawn(...shape),
    }),
  });
  const keys = (module: string, parts: Parts) =>
    Object.entries(parts).map(([key, part]) => [
      key.startsWith('base_model.') ? key : `base_model.model.${module}.${key}`,
      part,
    ]);
  const adapter = memoryFolder('adapter', {
    'adapter_config.json': { peft_type: the.type, target_modules: ['proj'], ...the.config },
    'adapter_model.safetensors': file(
      Object.fromEntries([...keys(MODULE, the.parts), ...keys(SECOND, the.second ?? {})]),
    ),
  });
  const run = (model: string) =>
    mergeInNode(`merge_method: passthrough\nmodels: [{model: ${model}}]\n`, '', { base, adapter }, 11);
  return { before: (await run('base')).tensors, after: (await run('base+adapter')).tensors };
}
