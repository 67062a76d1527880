/** Written by the compiler of assembly/kernels (`npx vitest run --project unit assembly -u`). Addresses are bytes. */
declare module 'virtual:cpu-kernels' {
  /** The bytes of a WebAssembly module. */
  export const CPU_KERNELS: Uint8Array<ArrayBuffer>;
  export interface KernelExports {
    absoluteSum(values: number, elements: number, sums: number, scratch: number): void;
    activateRow(x: number, y: number, inner: number, gated: number, kind: number): void;
    addScaled(x: number, y: number, n: number, scale: number): void;
    attentionMix(shares: number, sharePitch: number, rows: number, v: number, vPitch: number, keys: number, dim: number, y: number, yPitch: number): void;
    attentionScores(q: number, qPitch: number, rows: number, k: number, kPitch: number, columns: number, dim: number, out: number, outPitch: number, scale: number, cap: number, slope: number, column: number): void;
    capLogits(x: number, n: number, factor: number, cap: number): void;
    changeSquares(base: number, out: number, elements: number, sums: number, scratch: number): void;
    combine(values: number, stride: number, models: number, elements: number, coefficients: number, election: number, zeroNegative: number, lambda: number, extreme: number, out: number, stats: number, scratch: number): void;
    countEqual(values: number, elements: number, key: number, counts: number): void;
    countKeys(values: number, n: number, bins: number): void;
    countWindow(values: number, elements: number, lo: number, hi: number, counts: number, list: number, room: number): void;
    cutInputs(x: number, pitch: number, rows: number, inputs: number, to: number): void;
    decode(raw: number, out: number, n: number, dtype: number): number;
    difference(a: number, aType: number, b: number, bType: number, rows: number, cols: number, threshold: number, delta: number, sums: number, status: number, slots: number, scratch: number): void;
    drawMask(n: number, first: number, limit: number, key0: number, key1: number, mask: number, scratch: number): number;
    drawRanks(sources: number, i: number, n: number, first: number, cols: number, row: number, table: number, key0: number, key1: number, mask: number, at: number, scratch: number): number;
    encode(values: number, out: number, n: number, dtype: number): number;
    encodeBlocks(x: number, columns: number, type: number, importance: number, out: number, scratch: number): void;
    encodePanels(w: number, dtype: number, inputs: number, outputs: number, to: number, room: number): void;
    hasSmall(at: number, n: number): number;
    histogram(values: number, n: number, shift: number, mask: number, prefixShift: number, prefix: number, bins: number): void;
    innerProducts(values: number, stride: number, count: number, elements: number, run: number, sums: number, scratch: number): void;
    inputGram(x: number, pitch: number, rows: number, width: number, s: number, first: number, end: number, scratch: number): void;
    logSumRow(row: number, columns: number, sums: number): void;
    lowRank(left: number, right: number, cols: number, rank: number, out: number, first: number, n: number, scale: number, add: number, small: number, scratch: number): void;
    matmulBlock(w: number, dtype: number, inputs: number, outputs: number, x: number, xPitch: number, rows: number, bias: number, y: number, yPitch: number, add: number, scale: number, scratch: number): void;
    matmulEncoded(w: number, inputs: number, outputs: number, x: number, rows: number, bias: number, y: number, yPitch: number, add: number, scale: number): void;
    matmulPacked(w: number, dtype: number, inputs: number, outputs: number, x: number, xPitch: number, rows: number, bias: number, y: number, yPitch: number, add: number, scale: number, scratch: number): void;
    measureChanges(sources: number, models: number, n: number, firstBlock: number, masks: number, pitch: number, windows: number, windowed: number, counts: number, list: number, bins: number, sums: number, norms: number, spread: number, status: number, slots: number, scratch: number): void;
    mergeChanges(sources: number, models: number, n: number, firstBlock: number, cuts: number, masks: number, pitch: number, coefficients: number, election: number, zeroNegative: number, lambda: number, extreme: number, plain: number, packed: number, dtype: number, sums: number, stats: number, counts: number, kept: number, status: number, wrong: number, slots: number, scratch: number, merged: number): void;
    mergeCounts(values: number, stride: number, models: number, elements: number, coefficients: number, election: number, zeroNegative: number, extreme: number, packed: number, dtype: number, counts: number, scratch: number): void;
    normRow(x: number, weight: number, bias: number, y: number, width: number, centred: number, shift: number, epsilon: number): void;
    packKept(values: number, n: number, mask: number): void;
    packPanels(w: number, dtype: number, inputs: number, outputs: number, room: number): void;
    panelProduct(panel: number, rows: number, cols: number, x: number, k4: number, y: number, small: number, scratch: number): void;
    panelProductTransposed(panel: number, rows: number, cols: number, y: number, k4: number, z: number, small: number, scratch: number): void;
    pickChanges(sources: number, models: number, n: number, first: number, picks: number, count: number, picked: number, scratch: number): void;
    placeRow(x: number, y: number, cos: number, heads: number, dim: number, half: number, headPitch: number, group: number, groupPitch: number, yPitch: number, adjacent: number): void;
    rankRows(values: number, elements: number, cols: number, spare: number, ranks: number, scratch: number): void;
    sampleChanges(sources: number, i: number, n: number, first: number, step: number, keys: number, scratch: number): void;
    sampleKeys(values: number, n: number, first: number, step: number, keys: number): void;
    selectMask(values: number, n: number, mask: number): void;
    selectRandom(values: number, n: number, first: number, limit: number, key0: number, key1: number, scratch: number): number;
    selectRank(values: number, n: number, first: number, ranks: number, table: number, cols: number, key0: number, key1: number, scratch: number): number;
    selectRows(values: number, elements: number, first: number, cols: number, spare: number, table: number, key0: number, key1: number, scratch: number): number;
    selectThreshold(values: number, elements: number, firstBlock: number, outerKey: number, outerCut: number, outerQuota: number, innerKey: number, innerCut: number, innerQuota: number): number;
    softmaxLine(line: number, columns: number, first: number, end: number): void;
    storedSum(sources: number, models: number, anchor: number, table: number, extreme: number, plain: number, packed: number, dtype: number, n: number, sums: number, status: number, wrong: number, slots: number, scratch: number, merged: number): void;
    subtract(values: number, base: number, n: number): void;
    weightedSum(values: number, stride: number, count: number, anchor: number, table: number, extreme: number, out: number, n: number): void;
  }
}
