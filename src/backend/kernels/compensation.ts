import cgBeginWgsl from '../../../shaders/compensation/cg-begin.wgsl?raw';
import cgStepWgsl from '../../../shaders/compensation/cg-step.wgsl?raw';
import splitByMaskWgsl from '../../../shaders/compensation/split-by-mask.wgsl?raw';
import { type CpuRun, defineKernel } from '../kernel';
import { ROW_LIBRARY, type RowForm, rowWork } from './rows';

const PARAMS = {
  rows: 'u32',
  width4: 'u32',
  mask_row: 'u32',
  mask_words: 'u32',
  mask_begin: 'u32',
  may_rest: 'u32',
  shift: 'f32',
} as const;
type Params = keyof typeof PARAMS;

/** A row rests once a step lowered its error by no more than this share; as in shaders/compensation/cg-step.wgsl. */
const LEAST_GAIN = 0.0005;

/** A chunk divided by its mask. See shaders/compensation/split-by-mask.wgsl. */
export const splitByMask = defineKernel({
  id: 'split-by-mask',
  wgsl: splitByMaskWgsl,
  libraries: ['maskedRows'],
  params: PARAMS,
  buffers: { mask: 'u32', x: 'rw vec4f', dropped: 'rw vec4f' },
  work: ({ rows, width4 }) => rows * width4,
  span: () => 1024,
  cpu(run) {
    const width = 4 * run.params.width4;
    const x = run.f32('x');
    const dropped = run.f32('dropped');
    const isKept = keeping(run);
    for (let r = 0, e = 0; r < run.params.rows; r++) {
      for (let c = 0; c < width; c++, e++) {
        const keep = isKept(r, c);
        dropped[e] = keep ? 0 : x[e]!;
        if (!keep) x[e] = 0;
      }
    }
  },
});

const BEGIN = {
  mask: 'u32',
  inverse: 'vec4f',
  q: 'vec4f',
  p: 'rw vec4f',
  r: 'rw vec4f',
  rho: 'rw vec2f',
} as const;
const STEP = {
  mask: 'u32',
  inverse: 'vec4f',
  q: 'vec4f',
  p: 'rw vec4f',
  r: 'rw vec4f',
  x: 'rw vec4f',
  rho: 'rw vec2f',
} as const;

const defineBegin = (form: RowForm) =>
  defineKernel({
    id: `cg-begin-${form}`,
    wgsl: cgBeginWgsl,
    libraries: ['maskedRows', ROW_LIBRARY[form]],
    params: PARAMS,
    buffers: BEGIN,
    ...rowWork(form),
    cpu: begin,
  });

const defineStep = (form: RowForm) =>
  defineKernel({
    id: `cg-step-${form}`,
    wgsl: cgStepWgsl,
    libraries: ['maskedRows', ROW_LIBRARY[form]],
    params: PARAMS,
    buffers: STEP,
    ...rowWork(form),
    cpu: step,
  });

/** Masked conjugate gradients. See shaders/compensation/cg-begin.wgsl and shaders/compensation/cg-step.wgsl. */
export const cgBegin = { group: defineBegin('group'), line: defineBegin('line') };
export const cgStep = { group: defineStep('group'), line: defineStep('line') };

/** Whether the mask keeps an entry of the chunk. */
function keeping({ params, u32 }: CpuRun<Params, 'mask'>): (row: number, column: number) => boolean {
  const { mask_row, mask_words, mask_begin } = params;
  const mask = u32('mask');
  return (row, column) => {
    const c = mask_begin + column;
    return ((mask[(mask_row + row) * mask_words + (c >>> 5)]! >>> (c & 31)) & 1) === 1;
  };
}

function begin(run: CpuRun<Params, keyof typeof BEGIN>): void {
  const { rows, shift } = run.params;
  const width = 4 * run.params.width4;
  const [inverse, q, p, r] = [run.f32('inverse'), run.f32('q'), run.f32('p'), run.f32('r')];
  const rho = run.f32('rho');
  const isKept = keeping(run);
  for (let row = 0, e = 0; row < rows; row++) {
    let sum = 0;
    let error = 0;
    for (let c = 0; c < width; c++, e++) {
      error += p[e]! * (q[e]! + shift * p[e]!);
      r[e] = isKept(row, c) ? q[e]! : 0;
      p[e] = inverse[c]! * r[e]!;
      sum += r[e]! * p[e]!;
    }
    rho[2 * row] = sum;
    rho[2 * row + 1] = error;
  }
}

function step(run: CpuRun<Params, keyof typeof STEP>): void {
  const { rows, shift, may_rest } = run.params;
  const width = 4 * run.params.width4;
  const [inverse, q, p, r, x] = [run.f32('inverse'), run.f32('q'), run.f32('p'), run.f32('r'), run.f32('x')];
  const rho = run.f32('rho');
  const isKept = keeping(run);
  for (let row = 0; row < rows; row++) {
    const at = row * width;
    let energy = 0;
    for (let e = at; e < at + width; e++) energy += p[e]! * (q[e]! + shift * p[e]!);
    const before = rho[2 * row]!;
    const alpha = energy > 0 ? before / energy : 0;
    let after = 0;
    for (let c = 0; c < width; c++) {
      const e = at + c;
      const v = p[e]!;
      x[e]! += alpha * v;
      if (isKept(row, c)) r[e]! -= alpha * (q[e]! + shift * v);
      after += r[e]! * inverse[c]! * r[e]!;
    }
    const beta = before > 0 ? after / before : 0;
    for (let c = 0; c < width; c++) p[at + c] = inverse[c]! * r[at + c]! + beta * p[at + c]!;
    const error = Math.max(rho[2 * row + 1]! - alpha * before, 0);
    const rests = before === 0 || (may_rest === 1 && alpha * before <= LEAST_GAIN * error);
    rho[2 * row] = rests ? 0 : after;
    rho[2 * row + 1] = error;
  }
}
