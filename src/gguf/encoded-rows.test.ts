/** Every block has the bytes that ggml's own quantizer gives it, with and without an importance matrix. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { hasLlama, llama } from '../../e2e/llama-cpp';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { type BlockType, READ_TYPES } from './block-types';
import { decodeBlocks } from './decoded-blocks';
import { encodeRows } from './gguf-file';

const TYPES: BlockType[] = ['Q8_0', 'Q4_0', 'Q4_1', 'Q5_0', 'Q5_1', 'Q4_K', 'Q5_K', 'Q6_K'];

/** Weights as models have them, with outliers, and rows that are all zero, tiny, of one sign or the same everywhere. */
function weightRows(seed: number, columns: number): Float32Array<ArrayBuffer> {
  let state = seed >>> 0;
  const uniform = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return (state + 0.5) / 2 ** 32;
  };
  const normal = () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
  const kinds: (() => number)[] = [
    () => 0.02 * normal(),
    () => (uniform() < 0.01 ? 3 * normal() : 0.02 * normal()),
    () => 0,
    () => 1e-20 * normal(),
    () => Math.abs(normal()),
    () => -Math.abs(normal()) - 1,
    () => 0.25,
    () => Math.round(4 * normal()) / 8,
    () => 1000 * normal(),
    () => (uniform() < 0.9 ? 0 : normal()),
  ];
  return Float32Array.from(kinds.flatMap((kind) => Array.from({ length: columns }, kind)));
}

// runs wherever llama.cpp's package exists, and fails where it should and does not (e2e/llama-cpp.ts)
describe.runIf(hasLlama)('blocks are those of ggml, bit for bit', () => {
  test.each(TYPES)('%s', async (type) => {
    const engine = createCpuBackend();
    await fc.assert(
      fc.asyncProperty(
        fc.integer(),
        fc.constantFrom(256, 768),
        fc.boolean(),
        async (seed, columns, isWeighted) => {
          const values = weightRows(seed, columns);
          const importance = isWeighted
            ? Float32Array.from(
                weightRows(seed + 1, columns).subarray(columns, 2 * columns),
                (v) => v * v + 1e-6,
              )
            : undefined;
          const bytes = new Uint8Array(values.slice().buffer);
          const mine = await encodeRows(engine, {
            ...{ bytes, dtype: 'F32', type, columns, plus: 0, tensor: 't' },
            ...(importance ? { importance } : {}),
          });
          const theirs = llama().quantizeRows(type, values, columns, importance);
          expect(Buffer.compare(mine, theirs)).toBe(0);
        },
      ),
      { numRuns: 25 },
    );
  });
});

test.each([...TYPES, 'F16'] as const)('%s: NaN is said as what it is', async (type) => {
  const bytes = new Uint8Array(new Float32Array(256).fill(0.5).fill(Number.NaN, 7, 8).buffer);
  const rows = { bytes, dtype: 'F32', type, columns: 256, plus: 0, tensor: 'broken' } as const;
  await expect(encodeRows(createCpuBackend(), rows)).rejects.toMatchObject({
    code: 'NonFinite',
    message: 'broken has values that are NaN or infinite.',
  });
});

test.each(TYPES)('%s: a scale that F16 cannot hold is refused', async (type) => {
  const encoded = (most: number) => {
    const values = new Float32Array(256).fill(0.5);
    values[7] = -most;
    const bytes = new Uint8Array(values.buffer);
    return encodeRows(createCpuBackend(), {
      ...{ bytes, dtype: 'F32', type, columns: 256, plus: 0, tensor: 'large' },
    });
  };
  await expect(encoded(6e4)).resolves.toBeInstanceOf(Uint8Array);
  await expect(encoded(1e9)).rejects.toMatchObject({
    code: 'NonFinite',
    message: expect.stringContaining('large'),
  });
});

/** Blocks stand for what llama.cpp says, to the bit: all that its own quantization makes, and all codes and scales there are. */

const BLOCKS = 300;

const bytesOf = (length: number) => {
  let state = 7;
  return Uint8Array.from({ length }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state >>> 24;
  });
};

// runs wherever llama.cpp's package exists, and fails where it should and does not (e2e/llama-cpp.ts)
describe.runIf(hasLlama)('as llama.cpp', () => {
  const blocked = [...READ_TYPES].filter(([, { elements }]) => elements > 1);
  test.each(blocked.map(([id, of]) => ({ id, ...of })))('$name', ({ id, name, elements, bytes }) => {
    const blocks = bytesOf(BLOCKS * bytes);
    const expected = llama().dequantizeRows(
      name.replaceAll(/[A-Z]+/g, (part) => (part === 'K' ? part : part.toLowerCase())),
      blocks,
      BLOCKS * elements,
    );
    const here = new Float32Array(BLOCKS * elements);
    decodeBlocks(id, blocks, here, 0);
    expect(here.length).toBe(expected.length);
    const far = here.findIndex((value, i) => !Object.is(value, expected[i]));
    expect([far, here[far], expected[far]]).toEqual([-1, undefined, undefined]);
    expect(expected.filter(Number.isFinite).length).toBeGreaterThan(expected.length / 2);
  });
});
