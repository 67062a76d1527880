/** Interface of a kind of adapter: the tensors it stores for a module, and the change it makes to the module's weight. */
import type { KindParts } from '../../formats/kind-key';
import type { JsonValue } from '../../formats/strict-json';

/** The tensors of a module, by the name of their part, in f32. */
export type PartValues = Readonly<Record<string, Float32Array>>;

/** Those that are stored as integers: indices. */
export type PartIndices = Readonly<Record<string, Int32Array>>;

/** A module that an adapter changes. */
export interface AdaptedModule {
  /** Path in the base. */
  name: string;
  /** Its tensors, and those that the whole adapter shares. */
  parts: Readonly<Record<string, { shape: readonly number[] }>>;
  outputs: number;
  inputs: number;
  /** Rank and alpha by the config, patterns included; 0 where it has none. */
  rank: number;
  alpha: number;
  hasBias: boolean;
  /** Modules that the adapter changes. */
  modules: number;
  /** A field of adapter_config.json. */
  setting(key: string): JsonValue | undefined;
  number(key: string, otherwise: number): number;
  flag(key: string, otherwise: boolean): boolean;
  /** Ends with `AdapterUnsupported` and the words “The adapter … <what>”. */
  refuse(what: string): never;
}

/** ΔW = scale · L · R: L [outputs, rank], R [rank, inputs], row after row. Streams like a LoRA, on the engine. */
export interface Product {
  form: 'product';
  rank: number;
  scale: number;
  left(values: PartValues, indices: PartIndices): Float32Array;
  right(values: PartValues, indices: PartIndices): Float32Array;
}

/**
 * Changes one row [inputs] of the weight in place, in f64; `index` is its output, and `partner` the row that
 * {@link Rows.partner} names, as it was.
 */
export type RowChange = (row: Float64Array, index: number, partner: Float64Array) => void;

/** What a change is made of: the adapter's tensors, and a reading of every row of the weight as it was, where it takes one. */
export interface Opened {
  values: PartValues;
  indices: PartIndices;
  eachRow(visit: (row: Float32Array, index: number) => void): Promise<void>;
}

export type OpenRows = (opened: Opened) => RowChange | Promise<RowChange>;

/** A weight whose rows change, each for itself or with its partner; computed on the host, tile by tile. */
export interface Rows {
  form: 'rows';
  /** Absent where the weight stays as it is. */
  open?: OpenRows;
  /** Also for weights stored as [inputs, outputs]: there a row is one input. */
  openStored?: OpenRows;
  /** The other row that one depends on: neighbors have neighbors. */
  partner?(index: number): number;
  /** Change to the bias [outputs], a row by itself, where the module has one; the rows it can read are the weight's. */
  bias?: OpenRows;
}

export interface AdapterKind extends KindParts {
  /** `peft_type`. */
  type: string;
  /** Name in sentences. */
  title: string;
  /** W′ as the docs show it. */
  formula: string;
  /** Fields of the config that are read here or only concern training. */
  fields: readonly string[];
  update(module: AdaptedModule): Product | Rows;
}

/** [rows, columns], row after row, by a function of both. */
export function matrix(
  rows: number,
  columns: number,
  at: (row: number, column: number) => number,
): Float32Array {
  const out = new Float32Array(rows * columns);
  for (let r = 0; r < rows; r++) for (let c = 0; c < columns; c++) out[r * columns + c] = at(r, c);
  return out;
}

/** a·b for [n, k] · [k, m], row after row, summed in f64. */
export function multiply(a: ArrayLike<number>, b: ArrayLike<number>, k: number): Float64Array<ArrayBuffer> {
  const n = a.length / k;
  const m = b.length / k;
  const out = new Float64Array(n * m);
  for (let i = 0; i < n; i++) {
    for (let l = 0; l < k; l++) {
      const value = a[i * k + l]!;
      for (let j = 0; j < m; j++) out[i * m + j]! += value * b[l * m + j]!;
    }
  }
  return out;
}

/** (I − S)(I + S)⁻¹ of a skew-symmetric S [n, n], by Gauss elimination in f64 (PEFT: torch.linalg.solve, left=False). */
export function cayley(skew: Float64Array, n: number): Float64Array {
  // X (I + S) = I − S; transposed: (I − S) Xᵀ = I + S
  const left = skew.map((s, i) => (i % (n + 1) === 0 ? 1 : 0) - s);
  const right = skew.map((s, i) => (i % (n + 1) === 0 ? 1 : 0) + s);
  for (let pivot = 0; pivot < n; pivot++) {
    let best = pivot;
    for (let i = pivot + 1; i < n; i++) {
      if (Math.abs(left[i * n + pivot]!) > Math.abs(left[best * n + pivot]!)) best = i;
    }
    for (const m of [left, right]) {
      const row = m.slice(pivot * n, (pivot + 1) * n);
      m.copyWithin(pivot * n, best * n, (best + 1) * n);
      m.set(row, best * n);
    }
    for (let i = 0; i < n; i++) {
      if (i === pivot) continue;
      const factor = left[i * n + pivot]! / left[pivot * n + pivot]!;
      for (let j = 0; j < n; j++) {
        left[i * n + j]! -= factor * left[pivot * n + j]!;
        right[i * n + j]! -= factor * right[pivot * n + j]!;
      }
    }
  }
  return right.map((_, i) => {
    const [row, column] = [Math.floor(i / n), i % n];
    return right[column * n + row]! / left[column * (n + 1)]!;
  });
}
