// Kernels in WebAssembly with SIMD. Each is the twin of a loop over typed arrays in src/backend/kernels: those of merging give
// the same bits, and src/cpu calls them on strips of a tile; attention, inputGram and matmul belong to the forward pass and
// agree within a tolerance. All addresses are bytes in the imported memory.

export { activateRow, capLogits, normRow } from './activate';
export { attentionMix, attentionScores } from './attention';
export { decode, encode } from './codec';
export { combine, subtract, weightedSum } from './combine';
export { difference } from './difference';
export { inputGram } from './input-gram';
export { hasSmall } from './lanes';
export { lowRank } from './low-rank';
export { matmulBlock, matmulLine } from './matmul';
export { mergeCounts } from './merge-counts';
export { panelProduct, panelProductTransposed } from './panel-product';
export { selectRandom } from './random';
export { rankDigit, selectRank } from './rank';
export { countEqual, histogram, selectThreshold } from './select';
export { logSumRow, softmaxLine } from './softmax';
export { absoluteSum, changeSquares, gram } from './sums';
export { countWindow, sampleKeys } from './window';
