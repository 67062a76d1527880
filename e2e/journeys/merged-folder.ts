/**
 * Checks of a merged folder with nothing of Amalgam's own: a reader written from the safetensors rules and
 * f64 oracles over the sample family: the mean of the changes, and TIES (Yadav et al. 2023, as mergekit normalizes it).
 */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { SAMPLES } from './studio';

export type Files = Map<string, Uint8Array>;

interface Tensor {
  dtype: string;
  shape: number[];
  values: Float64Array;
  /** As they are stored. */
  bytes: Uint8Array;
}

/** Reads a safetensors file, throwing where it breaks a rule of the format. */
export function readSafetensors(file: Uint8Array): {
  tensors: Map<string, Tensor>;
  metadata: Record<string, string>;
} {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const length = Number(view.getBigUint64(0, true));
  const text = new TextDecoder('utf-8', { fatal: true }).decode(file.subarray(8, 8 + length));
  if (!text.startsWith('{')) throw new Error('the header does not begin with a brace');
  const header = JSON.parse(text) as Record<
    string,
    { dtype: string; shape: number[]; data_offsets: [number, number] }
  >;
  const { __metadata__: metadata, ...entries } = header;
  const tensors = new Map<string, Tensor>();
  let end = 0;
  const sorted = Object.entries(entries).sort(([, a], [, b]) => a.data_offsets[0] - b.data_offsets[0]);
  for (const [name, { dtype, shape, data_offsets }] of sorted) {
    const count = shape.reduce((a, b) => a * b, 1);
    const width = dtype === 'F32' ? 4 : 2;
    if (data_offsets[0] !== end) throw new Error(`${name}: a hole or an overlap`);
    end = data_offsets[1];
    if (end - data_offsets[0] !== count * width) throw new Error(`${name}: length and shape disagree`);
    const at = 8 + length + data_offsets[0];
    const values = new Float64Array(count);
    const bits = new DataView(new ArrayBuffer(4));
    for (let i = 0; i < count; i++) {
      if (dtype === 'F32') values[i] = view.getFloat32(at + 4 * i, true);
      else if (dtype === 'BF16') {
        bits.setUint32(0, view.getUint16(at + 2 * i, true) << 16);
        values[i] = bits.getFloat32(0);
      } else throw new Error(`${name}: dtype ${dtype}`);
    }
    tensors.set(name, { dtype, shape, values, bytes: file.subarray(at, at + count * width) });
  }
  if (8 + length + end !== file.byteLength) throw new Error('bytes behind the last tensor, or missing');
  return { tensors, metadata: (metadata ?? {}) as unknown as Record<string, string> };
}

const samples = new Map<string, Map<string, Tensor>>();

/** The tensors of a file of the sample family, read once. */
function sample(path: string): Map<string, Tensor> {
  const tensors = samples.get(path) ?? readSafetensors(readFileSync(join(SAMPLES, path))).tensors;
  samples.set(path, tensors);
  return tensors;
}

/** Task vectors of the three specialists: f64 differences, and (α/r)·B·A of the adapters. */
function taskVectors(name: string): Float64Array[] {
  const base = sample('base/model.safetensors').get(name)!;
  const tuned = sample('workshop/model.safetensors').get(name)!;
  const adapters = ['kitchen', 'harbour'].map((adapter) => {
    const stored = sample(`${adapter}/adapter_model.safetensors`);
    const module = `base_model.model.${name.replace(/\.weight$/, '')}`;
    const a = stored.get(`${module}.lora_A.weight`);
    const b = stored.get(`${module}.lora_B.weight`);
    const tau = new Float64Array(base.values.length);
    if (!a || !b) return tau;
    const [rank, cols] = a.shape as [number, number];
    for (let row = 0; row < b.shape[0]!; row++)
      for (let k = 0; k < rank; k++)
        for (let col = 0; col < cols; col++)
          tau[row * cols + col]! += 2 * b.values[row * rank + k]! * a.values[k * cols + col]!;
    return tau;
  });
  return [...adapters, base.values.map((w, i) => tuned.values[i]! - w)];
}

/** The change of element `e` of a tensor by the changes of the specialists; undefined where f32 and f64 may differ. */
type Mix = (taus: readonly Float64Array[]) => (e: number) => number | undefined;

/** The mean of the changes, which the studio begins with. */
const mean: Mix = (taus) => (e) => taus.reduce((sum, tau) => sum + tau[e]!, 0) / taus.length;

/** TIES at density 0.2, weight 1, normalized. An element whose |τ| lies within 1e-6 of a threshold may be kept or not. */
const ties: Mix = (taus) => {
  const trimmed = taus.map((tau) => {
    const k = Math.max(1, Math.floor(0.2 * tau.length));
    const threshold = tau.map(Math.abs).sort()[tau.length - k]!;
    // of equal ones the first are kept
    let equal = k - tau.filter((t) => Math.abs(t) > threshold).length;
    const kept = Array.from(
      tau,
      (t) => Math.abs(t) > threshold || (Math.abs(t) === threshold && equal-- > 0),
    );
    return { kept, threshold };
  });
  return (e) => {
    const near = taus.some((tau, i) => {
      const { threshold } = trimmed[i]!;
      return (
        threshold > 0 &&
        Math.abs(Math.abs(tau[e]!) - threshold) < 1e-6 * threshold &&
        !isExactTie(tau, e, threshold)
      );
    });
    if (near) return undefined;
    const d = taus.map((tau, i) => (trimmed[i]!.kept[e] ? tau[e]! : 0));
    const sum = d.reduce((a, b) => a + b, 0);
    const agreeing = d.filter((x) => (sum >= 0 ? x > 0 : x < 0));
    return agreeing.reduce((a, b) => a + b, 0) / Math.max(1, agreeing.length);
  };
};

/**
 * Compares a bf16 merge of the sample with its oracle: every element must be within one ulp of bf16; where W₀ and its change
 * cancel, within that plus the error of f32 arithmetic on the operands.
 * @returns elements compared, how many lay on a threshold, and how many needed the allowance for cancellation
 */
function expectSample(
  merged: Uint8Array,
  mix: Mix,
): { compared: number; onThreshold: number; canceled: number } {
  const { tensors } = readSafetensors(merged);
  const base = sample('base/model.safetensors');
  if (tensors.size !== base.size) throw new Error(`${tensors.size} tensors instead of ${base.size}`);
  let compared = 0;
  let onThreshold = 0;
  let canceled = 0;
  for (const [name, w0] of base) {
    const out = tensors.get(name)!;
    const mixed = mix(taskVectors(name));
    for (let e = 0; e < w0.values.length; e++) {
      const change = mixed(e);
      if (change === undefined) {
        onThreshold++;
        continue;
      }
      const expected = w0.values[e]! + change;
      const ulp = 2 ** (Math.floor(Math.log2(Math.abs(expected) || 1e-38)) - 7);
      const error = Math.abs(out.values[e]! - expected);
      if (error > ulp) {
        // W₀ and its change cancel almost wholly: what is left is below the last place of f32 arithmetic
        const f32Error = 2 ** -22 * (Math.abs(w0.values[e]!) + Math.abs(change));
        if (error > ulp + f32Error) {
          throw new Error(`${name}[${e}] is ${out.values[e]}, the oracle says ${expected}`);
        }
        canceled++;
      }
      compared++;
    }
  }
  return { compared, onThreshold, canceled };
}

export const expectSampleTies = (merged: Uint8Array) => expectSample(merged, ties);
export const expectSampleMean = (merged: Uint8Array) => expectSample(merged, mean);

/** Differences of bf16 values are exact in f32: equal magnitudes are then real ties, decided by index in both. */
function isExactTie(tau: Float64Array, e: number, threshold: number): boolean {
  return Math.abs(tau[e]!) === threshold && Math.fround(threshold) === threshold;
}
