import decodeWgsl from '../../../shaders/decode.wgsl?raw';
import { addTo, BLOCK, defineKernel } from '../kernel';

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
  wgsl: decodeWgsl,
  libraries: ['half'],
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
});
