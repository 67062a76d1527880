import { expect, it } from 'vitest';
import { wgslOf } from './gpu/wgsl';
import { defineKernel } from './kernel';

it('the WGSL of a kernel begins with its parameters and buffers, in the order of the declaration', () => {
  const wgsl = wgslOf(
    defineKernel({
      id: 'scale',
      wgsl: 'fn main() {}',
      params: { scale: 'f32', elements: 'u32' },
      buffers: { x: 'vec4f', y: 'rw atomic<u32>' },
    }),
  );
  const params = `struct Params {
  stamp: vec4<u32>,
  scale: f32,
  elements: u32,
}

@group(0) @binding(0) var<uniform> params: Params;

@group(0) @binding(1) var<storage, read> x: array<vec4f>;
@group(0) @binding(2) var<storage, read_write> y: array<atomic<u32>>;
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
  expect(wgslOf(kernel)).toContain('Params {\n  stamp: vec4<u32>,\n}');
  expect(wgslOf(kernel)).toMatch(/struct Params.*fn stamp\(.*fn widen_f16\(.*fn main/s);
});
