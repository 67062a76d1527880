import decodeWgsl from '../../../shaders/encoding/decode.wgsl?raw';
import encodeWgsl from '../../../shaders/encoding/encode.wgsl?raw';
import { addTo, BLOCK, blockOf, defineKernel, type KernelExports, SCRATCH, type Strip } from '../kernel';

/** Codes of shaders/lib/half.wgsl. */
export const DTYPE_CODE = { F32: 0, F16: 1, BF16: 2 } as const;

/** Bytes of a stored element, by its code. */
export function dtypeBytes(code: number): number {
  return code === DTYPE_CODE.F32 ? 4 : 2;
}

/** Form to decode a slot into; as in shaders/encoding/decode.wgsl. */
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
 * `status`, one word a slot. See shaders/encoding/decode.wgsl.
 */
export const decode = defineKernel({
  id: 'decode',
  wgsl: decodeWgsl,
  libraries: ['half'],
  params: { elements: 'u32', stride: 'u32', slots: 'u32' },
  buffers: { raw: 'u32', inputs: 'vec2u', values: 'rw u32', status: 'rw atomic<u32>' },
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

/** Elements that a workgroup packs: four blocks, as in shaders/lib/pack.wgsl. */
export const PACKED = 4 * BLOCK;

/**
 * Merged f32 → output dtype, rounded once; block sums of the squared change to the base; adds the number of non-finite
 * results to status[status]. See shaders/encoding/encode.wgsl.
 */
export const encode = defineKernel({
  id: 'encode',
  wgsl: encodeWgsl,
  libraries: ['half', 'exact4', 'pack'],
  params: { elements: 'u32', dtype: 'u32', status: 'u32' },
  buffers: { values: 'vec4f', merged: 'vec4u', packed: 'rw u32', sums: 'rw f32', status: 'rw atomic<u32>' },
  unit: () => PACKED,
  wasm(k, s) {
    const { dtype, status } = s.params;
    const merged = s.at('merged') + s.begin * 4;
    k.changeSquares(s.at('values') + s.begin * 4, merged, s.n, s.at('sums') + blockOf(s) * 4, SCRATCH);
    addTo(s, 'status', status, k.encode(merged, s.at('packed') + s.begin * dtypeBytes(dtype), s.n, dtype));
  },
});

/** A block of merged values on their way to the output dtype: in the scratch, after the part that `combine` needs. */
export const MERGED = 40 * 1024;

/** List of a tile's vectors for a kernel that takes them as they are stored, then a block of each, in the scratch. */
const SOURCES = 56 * 1024;
export const SLOTS = 64 * 1024;
/** Vectors for which that has room: the base and four contributors. */
export const MOST_SLOTS = 5;

/**
 * Writes the list of the vectors of a strip, from `first` on, as assembly/kernels/lib/stored.ts takes it; returns its address.
 * Vectors before have the address 0; one whose form is `leave` lies in `values`, `stride` elements a slot.
 */
export function listSources(
  s: Pick<Strip<never, 'raw' | 'inputs'>, 'at' | 'words' | 'begin'>,
  count: number,
  { first = 0, values = 0, stride = 0 }: { first?: number; values?: number; stride?: number },
): number {
  for (let slot = 0; slot < count; slot++) {
    const input = s.at('inputs') / 4 + slot * INPUT_WORDS;
    const [rawBegin, kind] = [s.words[input]!, s.words[input + 1]!];
    const form = kind >> 2;
    const dtype = form === SLOT_FORM.leave ? DTYPE_CODE.F32 : kind & 3;
    const begin = form === SLOT_FORM.leave ? values + slot * stride * 4 : s.at('raw') + rawBegin * 4;
    const address = slot < first ? 0 : begin + s.begin * dtypeBytes(dtype);
    s.words.set([address, dtype, form], SOURCES / 4 + slot * 3);
  }
  return SOURCES;
}

/**
 * Calls `make(at, n, merged)` for every block of a strip, which leaves n merged values at the address `merged`, and packs
 * them. See shaders/lib/pack.wgsl.
 */
export function packBlocks(
  k: KernelExports,
  s: Strip<'dtype' | 'status', 'packed' | 'status'>,
  make: (at: number, n: number, merged: number) => void,
): void {
  const { dtype, status } = s.params;
  let bad = 0;
  for (let at = s.begin; at < s.begin + s.n; at += BLOCK) {
    const n = Math.min(BLOCK, s.begin + s.n - at);
    make(at, n, MERGED);
    bad += k.encode(MERGED, s.at('packed') + at * dtypeBytes(dtype), n, dtype);
  }
  addTo(s, 'status', status, bad);
}

/**
 * Whole rows of stored elements → the blocks of a GGUF tensor (assembly/kernels/encoding.ts), on the processor alone.
 * `type` is ggml's number of the block type, `block_elements` and `block_bytes` are its sizes. `row` holds one row as f32;
 * adds the number of non-finite elements to `status`.
 */
export const encodeBlocks = defineKernel({
  id: 'encode-blocks',
  wgsl: '',
  params: {
    rows: 'u32',
    columns: 'u32',
    dtype: 'u32',
    type: 'u32',
    block_elements: 'u32',
    block_bytes: 'u32',
    weighted: 'u32',
  },
  buffers: {
    raw: 'u32',
    importance: 'u32',
    row: 'rw u32',
    blocks: 'rw u32',
    status: 'rw u32',
  },
  work: ({ rows, columns }) => rows * columns,
  wasm(k, { params, at, words }) {
    const { rows, columns, dtype, type, block_elements, block_bytes, weighted } = params;
    const importance = weighted === 0 ? 0 : at('importance');
    const rowBytes = (columns / block_elements) * block_bytes;
    let bad = 0;
    for (let row = 0; row < rows; row++) {
      bad += k.decode(at('raw') + row * columns * dtypeBytes(dtype), at('row'), columns, dtype);
      k.encodeBlocks(at('row'), columns, type, importance, at('blocks') + row * rowBytes, SCRATCH);
    }
    words[at('status') / 4]! += bad;
  },
});
