import { expect, it } from 'vitest';
import { defineKernel } from './kernel';

it('the WGSL of a kernel begins with its parameters, in the order of the declaration', () => {
  const { wgsl } = defineKernel({
    id: 'scale',
    wgsl: 'fn main() {}',
    params: { scale: 'f32', elements: 'u32' },
    buffers: {},
  });
  const params = `struct Params {
  stamp: vec4<u32>,
  scale: f32,
  elements: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
`;
  expect(wgsl.slice(0, params.length)).toBe(params);
  expect(wgsl.endsWith('\nfn main() {}')).toBe(true);
});

it('libraries come between the parameters and the kernel’s own file', () => {
  const kernel = defineKernel({
    id: 'half',
    wgsl: 'fn main() {}',
    libraries: ['half'],
    params: {},
    buffers: {},
  });
  expect(kernel.wgsl).toContain('Params {\n  stamp: vec4<u32>,\n}');
  expect(kernel.wgsl).toMatch(/struct Params.*fn stamp\(.*fn widen_f16\(.*fn main/s);
});

it('a kernel of the processor alone has no WGSL', () => {
  const kernel = defineKernel({ id: 'alone', wgsl: '', params: { rows: 'u32' }, buffers: {} });
  expect(kernel.wgsl).toBe('');
});
