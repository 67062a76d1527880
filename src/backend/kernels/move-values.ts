import moveValuesWgsl from '../../../shaders/move-values.wgsl?raw';
import { defineKernel } from '../kernel';

/** Moves words from one buffer to another. See shaders/move-values.wgsl. */
export const moveValues = defineKernel({
  id: 'move-values',
  wgsl: moveValuesWgsl,
  params: { elements: 'u32', from_word: 'u32', to_word: 'u32' },
  buffers: { x: 'read', y: 'read_write' },
  cpu({ params, u32 }) {
    const { elements, from_word, to_word } = params;
    u32('y').set(u32('x').subarray(from_word, from_word + elements), to_word);
  },
});
