/** Checkpoints of codes, scales and zero points that are packed bit by bit. */
import { philox } from '../../backend/philox';
import type { Dtype } from '../../formats/dtype';
import { f16ToF32 } from '../../formats/half';
import { buildSafetensorsHeader } from '../../formats/safetensors-write';
import { memoryFolder } from '../memory-models.test.support';

export interface Stored {
  dtype: Dtype;
  shape: number[];
  bytes: Uint8Array;
}

export const random = (n: number, seed: number) => {
  const words = new Uint32Array(4);
  return Array.from({ length: n }, (_, i) => {
    philox(i, 0, seed, 7, words);
    return words[0]! & 0xff;
  });
};
export const below = (n: number, bits: number, seed: number) =>
  random(n, seed).map((byte) => byte % 2 ** bits);
export const f32 = (shape: number[], values: number[]): Stored => ({
  ...{ dtype: 'F32', shape, bytes: new Uint8Array(Float32Array.from(values).buffer) },
});
/** Positive binary16 numbers about one, and what they are. */
export function halves(shape: number[], seed: number): { stored: Stored; values: number[] } {
  const words = Uint16Array.from(
    random(
      shape.reduce((a, b) => a * b, 1),
      seed,
    ),
    (b) => 0x3800 + 4 * b,
  );
  const values = Array.from(words, (w) => new Float32Array(Uint32Array.of(f16ToF32(w)).buffer)[0]!);
  return { stored: { dtype: 'F16', shape, bytes: new Uint8Array(words.buffer) }, values };
}

/** Codes one behind the other from the lowest bit of word 0 on, digit by digit. */
export function bitString(codes: number[], bits: number): Uint32Array {
  const digits = codes.map((code) => [...code.toString(2).padStart(bits, '0')].reverse().join('')).join('');
  const words = digits.match(/.{1,32}/g) ?? [];
  return Uint32Array.from(words, (word) => Number.parseInt([...word].reverse().join(''), 2));
}
export const ints = (shape: number[], words: ArrayLike<number>, dtype: Dtype = 'I32'): Stored => ({
  ...{ dtype, shape, bytes: new Uint8Array(Uint32Array.from(words).buffer) },
});
/** [rows][columns] → columns behind each other. */
export const transposed = <T>(rows: T[][]): T[][] => rows[0]!.map((_, c) => rows.map((row) => row[c]!));
export const rowsOf = (values: number[], columns: number) =>
  Array.from({ length: values.length / columns }, (_, r) => values.slice(r * columns, (r + 1) * columns));

export function folderOf(name: string, tensors: Record<string, Stored>, config: object) {
  const all = Object.entries(tensors);
  const header = buildSafetensorsHeader(
    all.map(([key, { dtype, shape, bytes }]) => ({ name: key, dtype, shape, byteLength: bytes.length })),
    {},
  );
  const file = Uint8Array.from(Buffer.concat([header, ...all.map(([, { bytes }]) => bytes)]));
  return memoryFolder(name, { 'model.safetensors': file, 'config.json': config });
}
