/** The WebAssembly module of assembly/kernels, as the engine calls it. All addresses are bytes in its memory. */
import { CPU_KERNELS } from 'virtual:cpu-kernels';

export type Address = number;

/** What assembly/kernels exports. */
export interface KernelExports {
  decode(raw: Address, out: Address, n: number, dtype: number): number;
  encode(values: Address, out: Address, n: number, dtype: number): number;
  subtract(values: Address, base: Address, n: number): void;
  weightedSum(
    values: Address,
    stride: number,
    count: number,
    anchor: number,
    table: Address,
    out: Address,
    n: number,
  ): void;
  combine(
    values: Address,
    stride: number,
    models: number,
    elements: number,
    coefficients: Address,
    election: number,
    zeroNegative: number,
    lambda: number,
    extreme: number,
    out: Address,
    stats: Address,
    scratch: Address,
  ): void;
  histogram(
    values: Address,
    n: number,
    shift: number,
    mask: number,
    prefixShift: number,
    prefix: number,
    bins: Address,
  ): void;
  countEqual(values: Address, elements: number, key: number, counts: Address): void;
  sampleKeys(values: Address, n: number, first: number, step: number, keys: Address): void;
  countWindow(
    values: Address,
    elements: number,
    lo: number,
    hi: number,
    counts: Address,
    list: Address,
    room: number,
  ): void;
  selectThreshold(
    values: Address,
    elements: number,
    firstBlock: number,
    outerKey: number,
    outerCut: number,
    outerQuota: number,
    innerKey: number,
    innerCut: number,
    innerQuota: number,
  ): number;
  selectRandom(
    values: Address,
    n: number,
    first: number,
    below: number,
    key0: number,
    key1: number,
    scratch: Address,
  ): number;
  rankDigit(
    values: Address,
    elements: number,
    cols: number,
    shift: number,
    isFirst: number,
    isLast: number,
    orderIn: Address,
    orderOut: Address,
    scratch: Address,
  ): void;
  selectRank(
    values: Address,
    n: number,
    first: number,
    ranks: Address,
    table: Address,
    cols: number,
    key0: number,
    key1: number,
    scratch: Address,
  ): number;
  gram(
    values: Address,
    stride: number,
    count: number,
    elements: number,
    sums: Address,
    scratch: Address,
  ): void;
  absoluteSum(values: Address, elements: number, sums: Address, scratch: Address): void;
  hasSmall(values: Address, n: number): number;
  lowRank(
    left: Address,
    right: Address,
    cols: number,
    rank: number,
    out: Address,
    first: number,
    n: number,
    scale: number,
    add: number,
    small: number,
    scratch: Address,
  ): void;
  attentionScores(
    q: Address,
    qPitch: number,
    rows: number,
    k: Address,
    kPitch: number,
    columns: number,
    dim: number,
    out: Address,
    outPitch: number,
    scale: number,
    cap: number,
    slope: number,
    column: number,
  ): void;
  attentionMix(
    shares: Address,
    sharePitch: number,
    rows: number,
    v: Address,
    vPitch: number,
    keys: number,
    dim: number,
    y: Address,
    yPitch: number,
  ): void;
  matmulBlock(
    weights: Address,
    dtype: number,
    inputs: number,
    outputs: number,
    x: Address,
    xPitch: number,
    rows: number,
    bias: Address,
    y: Address,
    yPitch: number,
    add: number,
    scale: number,
    scratch: Address,
  ): void;
  /** Needs no scratch. */
  matmulLine: KernelExports['matmulBlock'];
  inputGram(
    x: Address,
    pitch: number,
    rows: number,
    width: number,
    s: Address,
    first: number,
    end: number,
    scratch: Address,
  ): void;
  /** Columns [first, end) of a line of `columns`, a multiple of 4. */
  softmaxLine(line: Address, columns: number, first: number, end: number): void;
  logSumRow(row: Address, columns: number, sums: Address): void;
  activateRow(x: Address, y: Address, inner: number, gated: number, kind: number): void;
  capLogits(x: Address, n: number, factor: number, cap: number): void;
  normRow(
    x: Address,
    weight: Address,
    bias: Address,
    y: Address,
    width: number,
    centred: number,
    shift: number,
    epsilon: number,
  ): void;
  difference(
    a: Address,
    b: Address,
    rows: number,
    cols: number,
    threshold: number,
    delta: Address,
    sums: Address,
    scratch: Address,
  ): void;
  panelProduct(
    panel: Address,
    rows: number,
    cols: number,
    x: Address,
    k4: number,
    y: Address,
    small: number,
    scratch: Address,
  ): void;
  panelProductTransposed: KernelExports['panelProduct'];
  changeSquares(base: Address, out: Address, elements: number, sums: Address, scratch: Address): void;
}

/** Compiles the kernels over a memory; undefined where the browser has no WebAssembly with SIMD. */
export function instantiateKernels(memory: WebAssembly.Memory): KernelExports | undefined {
  const binary = Uint8Array.from(atob(CPU_KERNELS), (c) => c.charCodeAt(0));
  if (!WebAssembly.validate(binary)) return undefined;
  const instance = new WebAssembly.Instance(new WebAssembly.Module(binary), { env: { memory } });
  return instance.exports as unknown as KernelExports;
}
