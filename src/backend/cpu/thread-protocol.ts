/** Messages between an engine's owner and its worker: commands in order, answers to reads. */

import type { ErrorReport } from '../../errors';
import type { BackendSeconds } from '../backend';

/**
 * Buffers are numbers; kernels go by their id, their parameters and buffers in the order of their declaration: lists of numbers
 * take a tenth of the time that objects take to cross.
 */
export type Command =
  | { do: 'allocate'; buffer: number; byteLength: number; label: string }
  | { do: 'free'; buffer: number }
  | { do: 'write'; buffer: number; byteOffset: number; data: Uint8Array<ArrayBuffer> }
  | { do: 'clear'; buffer: number; byteOffset: number; byteLength: number }
  | { do: 'run'; kernel: string; params: number[]; buffers: number[]; elements?: number };

/** Commands, and the reads after them. */
export interface Batch {
  commands: Command[];
  read: { buffer: number; byteOffset: number; byteLength: number; into?: ArrayBuffer }[];
}

/** One for every batch, in order. `returned`: the written buffers, on their way back to the sender. */
export type Answer =
  | { data: Uint8Array<ArrayBuffer>[]; seconds: BackendSeconds; returned: ArrayBuffer[] }
  | { error: ErrorReport };
