/** safetensors dtypes, as spelled in the header, with their width in bits. */
export const DTYPE_BITS = {
  BOOL: 8,
  F4: 4,
  F6_E2M3: 6,
  F6_E3M2: 6,
  U8: 8,
  I8: 8,
  F8_E5M2: 8,
  F8_E4M3: 8,
  F8_E8M0: 8,
  F8_E4M3FNUZ: 8,
  F8_E5M2FNUZ: 8,
  I16: 16,
  U16: 16,
  F16: 16,
  BF16: 16,
  I32: 32,
  U32: 32,
  F32: 32,
  C64: 64,
  F64: 64,
  I64: 64,
  U64: 64,
} as const;

export type Dtype = keyof typeof DTYPE_BITS;

/** The dtypes Amalgam can compute with; every other dtype is copied byte for byte or stops the plan. */
export type WeightDtype = 'F32' | 'F16' | 'BF16';

export function isDtype(name: string): name is Dtype {
  return Object.hasOwn(DTYPE_BITS, name);
}

export function isWeightDtype(dtype: Dtype): dtype is WeightDtype {
  return dtype === 'F32' || dtype === 'F16' || dtype === 'BF16';
}

/** Bytes of one element of a weight dtype. */
export function weightBytes(dtype: WeightDtype): 2 | 4 {
  return dtype === 'F32' ? 4 : 2;
}
