/** Context in which a block runs: its weights, and the chunk's rows and caches. */
import type { Block, Linear } from '../models/architecture';
import type { LinearSite } from '../models/claim';
import type { RowBuffer } from './operations';
import type { Loaded, Passage } from './parts/part';

/** A block's weights on the device. */
export interface BlockWeights extends Loaded {
  block: Block;
  byteLength: number;
  /** Reads a linear map anew, or one that was left out. */
  renew(linear: Linear, signal?: AbortSignal): Promise<void>;
  close(): void;
}

/** Context of a chunk in a block, besides the weights. */
export interface BlockPassage extends Omit<Passage, 'weights' | 'name' | 'tap' | 'entered'> {
  /** Name of the chunk's stream in the workspace. */
  stream: string;
  /** All streams of the chunk, [rows, planes · hidden], where the model has several. */
  planes?: RowBuffer;
  onSite?(site: LinearSite, linears: readonly Linear[], rows: RowBuffer): void | Promise<void>;
}
