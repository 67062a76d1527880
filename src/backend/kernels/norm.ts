import normWgsl from '../../../shaders/norm.wgsl?raw';
import normLineWgsl from '../../../shaders/norm-line.wgsl?raw';
import { defineKernel } from '../kernel';

/** Codes of shaders/lib/norm.wgsl. */
export const NORM_CODE = { rms: 0, rms_plus_one: 1, layer: 2, layer_plus_one: 3 } as const;

const define = (id: string, wgsl: string) =>
  defineKernel({
    id,
    wgsl,
    libraries: ['norm'],
    params: {
      rows: 'u32',
      groups: 'u32',
      group_stride4: 'u32',
      width4: 'u32',
      x_begin4: 'u32',
      x_stride4: 'u32',
      y_stride4: 'u32',
      kind: 'u32',
      biased: 'u32',
      epsilon: 'f32',
    },
    buffers: { x: 'read', weight: 'read', bias: 'read', y: 'read_write' },
    wasm(k, { params: p, at }) {
      const bias = p.biased === 1 ? at('bias') : 0;
      const width = p.width4 * 4;
      const centred = p.kind >= NORM_CODE.layer ? 1 : 0;
      const shift = p.kind % 2;
      for (let row = 0; row < p.rows; row++) {
        for (let part = 0; part < p.groups; part++) {
          const from = at('x') + (p.x_begin4 + row * p.x_stride4 + part * p.group_stride4) * 16;
          const to = at('y') + row * p.y_stride4 * 16 + part * width * 4;
          k.normRow(from, at('weight'), bias, to, width, centred, shift, p.epsilon);
        }
      }
    },
  });

/** RMS norm, Gemma's with 1 + w, or LayerNorm of every group of every row: a workgroup each. See shaders/norm.wgsl. */
export const norm = define('norm', normWgsl);
/** The same, an invocation each. See shaders/norm-line.wgsl. */
export const normLine = define('norm-line', normLineWgsl);
