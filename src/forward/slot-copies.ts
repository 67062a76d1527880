/** Sequences that continue others: the state of those is copied to the slots of these. */
import type { BackendBuffer } from '../backend/backend';
import type { SlotCopy } from './chunk';
import { copyRows } from './kv-cache';
import type { Model } from './model';
import type { StateShape } from './parts/part';

/** Rows of the states per position and per sequence: their source, and (row, 0) of their destination. */
export function copiedRows(copies: readonly SlotCopy[]) {
  const rows = (each: (copy: SlotCopy) => [from: number, to: number][]) => {
    const pairs = copies.flatMap(each);
    return {
      from: Uint32Array.from(pairs, ([from]) => from),
      to: Uint32Array.from(pairs.flatMap(([, to]) => [to, 0])),
    };
  };
  return {
    position: rows(({ from, to, positions, slotRows }) =>
      Array.from({ length: positions }, (_, p) => [from * slotRows + p, to * slotRows + p]),
    ),
    sequence: rows(({ from, to }) => [[from, to]]),
  };
}

/** Copies the states of continued sequences to the slots of those that continue them. */
export function copyState(
  { operations: { queue, nothing }, workspace }: Model,
  k: number,
  copies: readonly SlotCopy[],
  { per, width }: StateShape,
  buffer: BackendBuffer,
): void {
  const rows = per === 'position' ? copies.reduce((sum, { positions }) => sum + positions, 0) : copies.length;
  copyRows(queue, {
    buffer,
    width,
    rows,
    picks: workspace.take(`${per} copied ${k}`, rows * 4),
    places: workspace.take(`${per} copies ${k}`, rows * 8),
    between: workspace.take('rows to copy', rows * width * 4),
    nothing,
  });
}
