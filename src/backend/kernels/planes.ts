import matchSizeWgsl from '../../../shaders/planes/match-size.wgsl?raw';
import mixPlanesWgsl from '../../../shaders/planes/mix-planes.wgsl?raw';
import spreadRowsWgsl from '../../../shaders/planes/spread-rows.wgsl?raw';
import { defineKernel } from '../kernel';

/**
 * The planes of a row (`PlanesWiring`), predicted from each other by what a router makes of the row, s, through the weights w; or
 * corrected by a, what became of the first. See shaders/planes/mix-planes.wgsl.
 */
export const mixPlanes = defineKernel({
  id: 'mix-planes',
  wgsl: mixPlanesWgsl,
  libraries: ['special'],
  params: { rows: 'u32', width: 'u32', planes: 'u32', s_stride: 'u32', correct: 'u32' },
  buffers: { x: 'f32', s: 'f32', w: 'f32', a: 'f32', y: 'rw f32', first: 'rw f32' },
  work: ({ rows, width }) => rows * width,
  span: () => 64,
  cpu({ params, f32 }) {
    const { rows, width, planes, s_stride, correct } = params;
    const [x, s, w, a, y, first] = [f32('x'), f32('s'), f32('w'), f32('a'), f32('y'), f32('first')];
    for (let r = 0; r < rows; r++) {
      const t = Float64Array.from({ length: planes }, (_, m) => Math.tanh(s[r * s_stride + m]!));
      const coefficients = Float64Array.from({ length: correct === 1 ? planes : planes ** 2 }, (_, line) =>
        t.reduce((sum, v, m) => sum + w[line * planes + m]! * v, 0),
      );
      for (let i = 0; i < width; i++) {
        const at = r * planes * width + i;
        for (let p = 0; p < planes; p++) {
          let value = x[at + p * width]!;
          if (correct === 1) value += (a[r * width + i]! - x[at]!) * (1 + coefficients[p]!);
          else {
            for (let q = 0; q < planes; q++) value += x[at + q * width]! * coefficients[p * planes + q]!;
          }
          y[at + p * width] = value;
          if (p === 0) first[r * width + i] = value;
        }
      }
    }
  },
});

/** Rows brought to the size of others, in place. See shaders/planes/match-size.wgsl. */
export const matchSize = defineKernel({
  id: 'match-size',
  wgsl: matchSizeWgsl,
  params: { rows: 'u32', width: 'u32' },
  buffers: { x: 'f32', y: 'rw f32' },
  work: ({ rows }) => rows,
  span: () => 64,
  cpu({ params: { rows, width }, f32 }) {
    const [x, y] = [f32('x'), f32('y')];
    for (let r = 0; r < rows; r++) {
      const [wanted, own] = [x, y].map((all) => {
        const row = all.subarray(r * width, (r + 1) * width);
        return row.reduce((sum, v) => sum + v * v, 0) / width;
      }) as [number, number];
      const factor = Math.sqrt(wanted) / Math.sqrt(Math.max(own, 1e-5));
      for (let i = r * width; i < (r + 1) * width; i++) y[i]! *= factor;
    }
  },
});

/** Rows added to several runs of columns. See shaders/planes/spread-rows.wgsl. */
export const spreadRows = defineKernel({
  id: 'spread-rows',
  wgsl: spreadRowsWgsl,
  params: { rows: 'u32', width: 'u32', copies: 'u32', y_begin: 'u32', y_stride: 'u32' },
  buffers: { x: 'f32', y: 'rw f32' },
  work: ({ rows, width }) => rows * width,
  span: () => 64,
  cpu({ params: { rows, width, copies, y_begin, y_stride }, f32 }) {
    const [x, y] = [f32('x'), f32('y')];
    for (let r = 0; r < rows; r++) {
      for (let c = 0; c < copies; c++) {
        const at = r * y_stride + y_begin + c * width;
        for (let i = 0; i < width; i++) y[at + i]! += x[r * width + i]!;
      }
    }
  },
});
