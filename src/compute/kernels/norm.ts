import normWgsl from '../../../shaders/norm.wgsl?raw';
import { defineKernel } from '../kernel';
import { composeWgsl } from '../wgsl';

/** Codes of shaders/norm.wgsl. */
export const NORM_CODE = { rms: 0, rms_plus_one: 1, layer: 2 } as const;

/** RMS norm, Gemma's with 1 + w, or LayerNorm of every group of every row. See shaders/norm.wgsl. */
export const norm = defineKernel({
  id: 'norm',
  wgsl: composeWgsl(normWgsl),
  params: {
    rows: 'u32',
    groups: 'u32',
    group_stride: 'u32',
    width: 'u32',
    x_begin: 'u32',
    x_stride: 'u32',
    y_stride: 'u32',
    kind: 'u32',
    biased: 'u32',
    epsilon: 'f32',
  },
  buffers: { x: 'read', weight: 'read', bias: 'read', y: 'read_write' },
  cpu({ params, f32 }) {
    const { rows, groups, width, kind, biased } = params;
    const x = f32('x');
    const weight = f32('weight');
    const bias = f32('bias');
    const y = f32('y');
    const shift = kind === NORM_CODE.rms_plus_one ? 1 : 0;
    for (let index = 0; index < rows * groups; index++) {
      const row = Math.floor(index / groups);
      const part = index % groups;
      const from = params.x_begin + row * params.x_stride + part * params.group_stride;
      const to = row * params.y_stride + part * width;
      let mean = 0;
      if (kind === NORM_CODE.layer) {
        for (let i = 0; i < width; i++) mean += x[from + i]!;
        mean /= width;
      }
      let squares = 0;
      for (let i = 0; i < width; i++) squares += (x[from + i]! - mean) ** 2;
      const inverse = 1 / Math.sqrt(squares / width + params.epsilon);
      for (let i = 0; i < width; i++) {
        y[to + i] = (x[from + i]! - mean) * inverse * (weight[i]! + shift) + (biased === 1 ? bias[i]! : 0);
      }
    }
  },
});
