// The merge kernels in WebAssembly with SIMD. Each is the twin of a loop over typed arrays in src/compute/kernels and
// gives the same bits; src/cpu calls them on strips of a tile. All addresses are bytes in the imported memory.

export { decode, encode } from './codec';
export { combine, subtract, weightedSum } from './combine';
export { hasSmall } from './lanes';
export { lowRank } from './low-rank';
export { selectRandom } from './random';
export { rankDigit, selectRank } from './rank';
export { countEqual, histogram, selectThreshold } from './select';
export { absoluteSum, changeSquares, gram } from './sums';
