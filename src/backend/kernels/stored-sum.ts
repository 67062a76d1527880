import storedSumWgsl from '../../../shaders/stored-sum.wgsl?raw';
import { defineKernel } from '../kernel';
import { pairCount } from './inner-products';

/** Stored tensors that one pass can take: the sums of more have no room in a workgroup. */
export const MOST_STORED = 4;

/** Words of a block's sums: the products of base and contributors, the squared change, the elements left at the base. */
export function storedSumWords(models: number): number {
  return pairCount(models + 1) + 2;
}

const define = (models: number, hasBase: boolean) =>
  defineKernel({
    id: `stored-sum-${models}${hasBase ? '-base' : ''}`,
    wgsl: `const VECTORS = ${models + 1}u;\nconst FIRST = ${hasBase ? 0 : 1}u;\n${storedSumWgsl}`,
    libraries: ['half', 'exact4', 'pack', 'stored'],
    params: { elements: 'u32', anchor: 'u32', dtype: 'u32', status: 'u32' },
    buffers: {
      raw: 'read',
      inputs: 'read',
      coefficients: 'read',
      packed: 'read_write',
      sums: 'read_write',
      status: 'read_write',
    },
  });

const upTo = (models: number, hasBase: boolean) =>
  Array.from({ length: models }, (_, i) => define(i + 1, hasBase));

/**
 * Weighted sums of stored weights with all they are measured by, in one pass, by contributors less one. Graphics devices
 * only: on the processor the strips of separate kernels stay in its cache. See shaders/stored-sum.wgsl.
 */
export const storedSums = { base: upTo(MOST_STORED - 1, true), alone: upTo(MOST_STORED, false) };
