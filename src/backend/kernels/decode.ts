import decodeWgsl from '../../../shaders/decode.wgsl?raw';
import { f16ToF32 } from '../../formats/half';
import { exact, flushBits } from '../exact';
import { addTo, BLOCK, defineKernel } from '../kernel';
import { composeWgsl } from '../wgsl';

/** Codes of shaders/lib/half.wgsl. */
export const DTYPE_CODE = { F32: 0, F16: 1, BF16: 2 } as const;

/** Bytes of a stored element, by its code. */
export function dtypeBytes(code: number): number {
  return code === DTYPE_CODE.F32 ? 4 : 2;
}

/** What becomes of a slot; as in shaders/decode.wgsl. */
export const SLOT_FORM = { leave: 0, whole: 1, change: 2 } as const;

/** Words of a slot in `inputs`. */
export const INPUT_WORDS = 2;

/** The words of a slot in `inputs`: where its stored words begin in `raw`, their dtype and what becomes of them. */
export function inputWords(
  form: keyof typeof SLOT_FORM,
  rawBegin = 0,
  dtype: keyof typeof DTYPE_CODE = 'F32',
): [number, number] {
  return [rawBegin, DTYPE_CODE[dtype] + 4 * SLOT_FORM[form]];
}

/**
 * Stored words of all tensors of a tile → f32 slots, subnormals as zeros; adds the numbers of non-finite elements to
 * `status`, one word a slot. See shaders/decode.wgsl.
 */
export const decode = defineKernel({
  id: 'decode',
  wgsl: composeWgsl(decodeWgsl, 'half'),
  params: { elements: 'u32', stride: 'u32', slots: 'u32' },
  buffers: { raw: 'read', inputs: 'read', values: 'read_write', status: 'read_write' },
  unit: () => BLOCK,
  wasm(k, s) {
    const { stride, slots } = s.params;
    const values = s.at('values') + s.begin * 4;
    for (let slot = 0; slot < slots; slot++) {
      const input = s.at('inputs') / 4 + slot * INPUT_WORDS;
      const [rawBegin, kind] = [s.words[input]!, s.words[input + 1]!];
      const [dtype, form] = [kind & 3, kind >> 2];
      const out = values + slot * stride * 4;
      if (form === SLOT_FORM.leave) continue;
      const raw = s.at('raw') + rawBegin * 4 + s.begin * dtypeBytes(dtype);
      addTo(s, 'status', slot, k.decode(raw, out, s.n, dtype));
      if (form === SLOT_FORM.change) k.subtract(out, values, s.n);
    }
  },
  cpu({ params, u32, f32 }) {
    const { elements, stride, slots } = params;
    const [inputs, status, floats] = [u32('inputs'), u32('status'), f32('values')];
    for (let slot = 0; slot < slots; slot++) {
      const form = inputs[INPUT_WORDS * slot + 1]! >> 2;
      const out = slot * stride;
      const values = u32('values').subarray(out, out + elements);
      if (form === SLOT_FORM.leave) continue;
      status[slot]! += widen(
        u32('raw'),
        inputs[INPUT_WORDS * slot]!,
        inputs[INPUT_WORDS * slot + 1]! & 3,
        values,
      );
      if (form !== SLOT_FORM.change) continue;
      for (let e = 0; e < elements; e++) floats[out + e] = exact(floats[out + e]! - floats[e]!);
    }
  },
});

/** Stored elements from word `begin` on as f32 bits; returns how many are not finite. */
function widen(raw: Uint32Array, begin: number, dtype: number, values: Uint32Array): number {
  const n = values.length;
  const halves = new Uint16Array(raw.buffer, raw.byteOffset + begin * 4, dtype === DTYPE_CODE.F32 ? 0 : n);
  if (dtype === DTYPE_CODE.F32) values.set(raw.subarray(begin, begin + n));
  else if (dtype === DTYPE_CODE.BF16) for (let e = 0; e < n; e++) values[e] = halves[e]! << 16;
  else for (let e = 0; e < n; e++) values[e] = f16ToF32(halves[e]!);
  let bad = 0;
  for (let e = 0; e < n; e++) {
    const bits = values[e]!;
    if ((bits & 0x7f800000) === 0x7f800000) bad++;
    values[e] = flushBits(bits);
  }
  return bad;
}
