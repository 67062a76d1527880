import type { Backend, BackendBuffer } from '../../backend/backend';
import { BLOCK, blockCount } from '../../backend/kernel';
import { COMBINE_STATS, coefficientWords, MOST_IN_TABLE } from '../../backend/kernels/combine';
import { INPUT_WORDS } from '../../backend/kernels/encoding';
import { HISTOGRAM_WORDS } from '../../backend/kernels/search';
import { mergeCountWords } from '../../backend/kernels/statistics';
import { storedSumWords } from '../../backend/kernels/sums';
import { bytesPerElement, DEFAULT_DEVICE_BYTES } from './device-budget';

/**
 * The device buffers of a run, allocated once and reused by every tensor. A tile holds slot 0 (the base) and one slot
 * per contributor, each `stride` f32 apart.
 */
export interface Workspace {
  engine: Backend;
  /** Most contributors of any tensor. */
  models: number;
  /** Most elements of a tile; a multiple of BLOCK. */
  stride: number;
  /** Stored words of every slot, `stride` words apart. */
  raw: BackendBuffer;
  /** Stored words of every slot with the form to decode them into (shaders/encoding/decode.wgsl). */
  inputs: BackendBuffer;
  values: BackendBuffer;
  /** Merged f32 values of the tile, for kernels that do not pack them. */
  merged: BackendBuffer;
  packed: BackendBuffer;
  /** Non-finite counts: one per slot, then one for the output. */
  status: BackendBuffer;
  kept: BackendBuffer;
  /** Histograms: two searches per contributor, and at least three. */
  bins: BackendBuffer;
  /** Block sums and counts; large enough for every kernel that writes them. */
  sums: BackendBuffer;
  stats: BackendBuffer;
  coefficients: BackendBuffer;
  /** Merge counts of the tile (shaders/statistics/merge-counts.wgsl). */
  counts: BackendBuffer;
  /** Receives the time the run waited for stored bytes. */
  onWait?(seconds: number): void;
  close(): void;
}

/**
 * The largest tile that fits the device: within `deviceBytes`, within one buffer, and no larger than the largest
 * tensor. `wanted` overrides the budget (tests vary it); results never depend on it. Tiles of `least` are needed to hold
 * whole rows, whatever the budget.
 */
export function tileElementsFor(
  engine: Backend,
  models: number,
  largestTensor: number,
  wanted?: number,
  least = BLOCK,
): number {
  const bytes = engine.tileBytes ?? DEFAULT_DEVICE_BYTES;
  const budget = Math.max(least, wanted ?? Math.floor(bytes / bytesPerElement(models)));
  const oneBuffer = Math.floor(engine.maxBufferBytes / (4 * (models + 1)));
  const most = Math.min(budget, oneBuffer, Math.ceil(largestTensor / BLOCK) * BLOCK);
  return Math.max(BLOCK, Math.floor(most / BLOCK) * BLOCK);
}

/**
 * The largest power of two up to `elements`, or `least`. Stored bytes of such tiles fill the arrays that are used again
 * (src/sources/spare-arrays.ts), whose coming and going sets off collections by their size.
 */
export function wholeArrays(elements: number, least: number): number {
  return Math.max(least, 2 ** Math.floor(Math.log2(elements)));
}

/** Allocates the buffers for tiles of `tileElements` and up to `models` contributors. */
export function openWorkspace(engine: Backend, models: number, tileElements: number): Workspace {
  const stride = Math.ceil(tileElements / BLOCK) * BLOCK;
  const slots = models + 1;
  const blocks = blockCount(stride);
  const buffers: BackendBuffer[] = [];
  const make = (bytes: number, label: string) => {
    const buffer = engine.allocate(bytes, label);
    buffers.push(buffer);
    return buffer;
  };
  return {
    engine,
    models,
    stride,
    raw: make(slots * stride * 4, 'raw'),
    inputs: make(slots * INPUT_WORDS * 4, 'inputs'),
    values: make(slots * stride * 4, 'values'),
    merged: make(stride * 4, 'merged'),
    packed: make(stride * 4, 'packed'),
    status: make((slots + 1) * 4, 'status'),
    kept: make(models * 4, 'kept'),
    bins: make(Math.max(2 * models, 3) * HISTOGRAM_WORDS * 4, 'bins'),
    sums: make(blocks * storedSumWords(models) * 4, 'sums'),
    stats: make(blocks * COMBINE_STATS * 4, 'stats'),
    coefficients: make(coefficientWords(Math.min(models, MOST_IN_TABLE), true) * 4, 'coefficients'),
    counts: make(mergeCountWords(models) * 4, 'counts'),
    close() {
      for (const buffer of buffers) engine.free(buffer);
    },
  };
}
