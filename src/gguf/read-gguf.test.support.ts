/** A GGUF file taken apart, for tests. */
import { aligned } from './header';

export interface GgufParts {
  metadata: Map<string, unknown>;
  tensors: Map<string, { type: number; shape: number[]; bytes: Uint8Array }>;
}

/** Bytes of a block and elements in it, by ggml's number of the type. */
const BLOCKS: Record<number, [elements: number, bytes: number]> = {
  0: [1, 4],
  1: [1, 2],
  30: [1, 2],
  8: [32, 34],
  2: [32, 18],
  3: [32, 20],
  6: [32, 22],
  7: [32, 24],
  12: [256, 144],
  13: [256, 176],
  14: [256, 210],
};

export function readGguf(bytes: Uint8Array): GgufParts {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 8;
  const step = (bytes: number) => {
    at += bytes;
    return at - bytes;
  };
  const u32 = () => view.getUint32(step(4), true);
  const u64 = () => Number(view.getBigUint64(step(8), true));
  const text = () => {
    const length = u64();
    at += length;
    return new TextDecoder().decode(bytes.subarray(at - length, at));
  };
  const value = (type: number): unknown => {
    if (type === 7) return bytes[step(1)] === 1;
    if (type === 8) return text();
    if (type === 6) return view.getFloat32(step(4), true);
    if (type === 5) return view.getInt32(step(4), true);
    if (type === 4) return u32();
    if (type === 10) return u64();
    if (type !== 9) throw new Error(`type ${type}`);
    const of = u32();
    return Array.from({ length: u64() }, () => value(of));
  };
  const count = u64();
  const metadata = new Map(Array.from({ length: u64() }, () => [text(), value(u32())] as const));
  const entries = Array.from({ length: count }, () => {
    const name = text();
    const shape = Array.from({ length: u32() }, u64).reverse();
    return { name, shape, type: u32(), offset: u64() };
  });
  const begin = aligned(at);
  const tensors = new Map(
    entries.map(({ name, shape, type, offset }) => {
      const [elements, blockBytes] = BLOCKS[type]!;
      const length = (shape.reduce((a, b) => a * b, 1) / elements) * blockBytes;
      return [name, { type, shape, bytes: bytes.slice(begin + offset, begin + offset + length) }];
    }),
  );
  return { metadata, tensors };
}
