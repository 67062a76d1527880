/** The bytes of a stored tensor, as they come, in the order in which its rows stand in a GGUF file. */
import { spareArray } from '../sources/spare-arrays';
import type { Layout } from './tensors';

export interface RowsOfTensor {
  layout: Layout;
  /** As the file has them: rows of columns, of so many bytes an element. Vectors have one column. */
  rows: number;
  columns: number;
  elementBytes: number;
}

/** Pieces handed on are about this long. */
const PIECE_BYTES = 2 ** 20;

export interface RowArranger {
  /** Takes stored bytes; hands on whole rows in order, each piece to be kept by who gets it. */
  push(bytes: Uint8Array, emit: (rows: Uint8Array<ArrayBuffer>) => Promise<void>): Promise<void>;
}

/** Bytes held at once: a piece, or a group of rows that change places, and what is made of it. */
export function heldBytes(tensor: RowsOfTensor): number {
  const { rows, columns, elementBytes } = tensor;
  const row = columns * elementBytes;
  return 2 * Math.max(groupOf(tensor) * row, Math.min(PIECE_BYTES, rows * row));
}

export function arrangeRows(tensor: RowsOfTensor): RowArranger {
  const { rows, columns, elementBytes } = tensor;
  const rowBytes = columns * elementBytes;
  const group = groupOf(tensor);
  const groupBytes = group * rowBytes;
  const pieceBytes = Math.max(1, Math.floor(PIECE_BYTES / groupBytes)) * groupBytes;
  let left = rows * rowBytes;
  let piece = new Uint8Array(0);
  let filled = 0;
  return {
    async push(bytes, emit) {
      for (let begin = 0; begin < bytes.byteLength; ) {
        if (filled === 0) piece = spareArray(Math.min(pieceBytes, left));
        const part = bytes.subarray(begin, begin + piece.byteLength - filled);
        piece.set(part, filled);
        filled += part.byteLength;
        begin += part.byteLength;
        if (filled < piece.byteLength) continue;
        left -= filled;
        filled = 0;
        await emit(arranged(piece, tensor));
      }
    },
  };
}

/** Rows that change places among themselves. */
function groupOf({ layout, rows }: RowsOfTensor): number {
  return layout.kind === 'as_stored' ? 1 : (layout.rows ?? rows);
}

function arranged(piece: Uint8Array<ArrayBuffer>, tensor: RowsOfTensor): Uint8Array<ArrayBuffer> {
  const { layout, columns, elementBytes } = tensor;
  if (layout.kind === 'as_stored') return piece;
  const out = spareArray(piece.byteLength);
  const rows = groupOf(tensor);
  const rowBytes = columns * elementBytes;
  const groupBytes = rows * rowBytes;
  for (let begin = 0; begin < piece.byteLength; begin += groupBytes) {
    if (layout.kind === 'transposed') {
      for (let row = 0; row < rows; row++) {
        const stored = layout.from?.[row] ?? row;
        for (let column = 0; column < columns; column++) {
          const from = begin + (column * rows + stored) * elementBytes;
          const to = begin + (row * columns + column) * elementBytes;
          for (let byte = 0; byte < elementBytes; byte++) out[to + byte] = piece[from + byte]!;
        }
      }
      continue;
    }
    for (let row = 0; row < rows; row++) {
      const from = begin + layout.from[row]! * rowBytes;
      out.set(piece.subarray(from, from + rowBytes), begin + row * rowBytes);
    }
  }
  return out;
}
