import pcbWgsl from '../../../shaders/pcb.wgsl?raw';
import { exact } from '../../backend/exact';
import { defineKernel } from '../../backend/kernel';

/** Factors of the Taylor sum of an exponential by Horner's rule, the last first. */
export const TAYLOR = Array.from({ length: 10 }, (_, k) => 1 / (k + 1));

const bits = new Uint32Array(1);
const float = new Float32Array(bits.buffer);

/** Balances of a model's changes, or all changes scaled by theirs, in place. See shaders/pcb.wgsl. */
export const kernel = defineKernel({
  id: 'pcb',
  wgsl: pcbWgsl,
  params: { elements: 'u32', stride: 'u32', models: 'u32', model: 'u32' },
  buffers: { values: 'rw f32', coefficients: 'f32', out: 'rw u32', kept: 'rw atomic<u32>' },
  cpu({ params, f32, u32 }) {
    const { elements, stride, models, model } = params;
    const values = f32('values');
    const coefficients = f32('coefficients');
    const shares = new Float32Array(models);
    const balance = (t: number, sum: number, i: number) => {
      const x = exact(t * sum);
      if (!(x > 0)) return 0;
      const u = Math.min(exact(Math.min(Math.abs(t), coefficients[5 * i]!) * coefficients[5 * i + 1]!), 1);
      const z = exact(u * u);
      let power = 1;
      for (let k = TAYLOR.length; k > 0; k--)
        power = exact(exact(power * exact(z * coefficients[5 * models + k - 1]!)) + 1);
      let all = x;
      for (let k = 0; k < models; k++) all = exact(all * power);
      return all;
    };
    for (let e = 0; e < elements; e++) {
      let sum = 0;
      for (let i = 1; i <= models; i++) sum = exact(sum + values[i * stride + e]!);
      if (model < models) {
        f32('out')[e] = Number.isFinite(sum) ? balance(values[(model + 1) * stride + e]!, sum, model) : 0;
        continue;
      }
      if (!Number.isFinite(sum)) continue;
      let total = 0;
      for (let i = 0; i < models; i++) {
        const b = balance(values[(i + 1) * stride + e]!, sum, i);
        const [least, most, factor] = coefficients.subarray(5 * i + 2, 5 * i + 5) as unknown as number[];
        shares[i] = b === 0 ? 0 : b >= most! ? 1 : b > least! ? exact(exact(b - least!) * factor!) : 0;
        total = exact(total + shares[i]!);
      }
      const factor = inverse(total);
      for (let i = 0; i < models; i++) {
        const at = (i + 1) * stride + e;
        const share = shares[i]!;
        const most = coefficients[5 * i]!;
        const clipped = Math.min(Math.max(values[at]!, -most), most);
        values[at] = share > 0 ? exact(clipped * exact(share * factor)) : 0;
        if (share > 0) u32('kept')[i]! += 1;
      }
    }
  },
});

/** 1/x by Newton's method from a guess made of its bits, as in shaders/combine/combine.wgsl. */
function inverse(x: number): number {
  float[0] = x;
  bits[0] = 0x7ef311c3 - bits[0]!;
  let r = float[0]!;
  for (let k = 0; k < 4; k++) r = exact(r * exact(2 - exact(x * r)));
  return r;
}
