import type { AdapterKind } from './kind';

/** C³A (arXiv:2407.19342; PEFT tuners/c3a): blocks of circulant matrices, divided by the number of inputs. */
export const c3a: AdapterKind = {
  type: 'C3A',
  title: 'C³A',
  formula: 'W + circulant blocks / inputs',
  parts: ['c3a_kernel'],
  fields: ['block_size', 'block_size_pattern', 'init_weights'],
  update({ parts, inputs, outputs, refuse }) {
    const [m, n, size] = parts.c3a_kernel!.shape as [number, number, number];
    if (m * size !== outputs || n * size !== inputs) refuse('has a kernel of another size');
    return {
      form: 'rows',
      open:
        ({ c3a_kernel }) =>
        (row, index) => {
          const [block, k] = [Math.floor(index / size), index % size];
          for (let c = 0; c < inputs; c++) {
            const t = (c + size - k) % size;
            row[c]! += c3a_kernel![(block * n + Math.floor(c / size)) * size + t]! / inputs;
          }
        },
    };
  },
};
