/** Blocks stand for what llama.cpp says, to the bit: all that its own quantization makes, and all codes and scales there are. */
import { describe, expect, test } from 'vitest';
import { hasLlama, llama } from '../../e2e/llama-cpp';
import { READ_TYPES } from './block-types';
import { decodeBlocks } from './decoded-blocks';

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
