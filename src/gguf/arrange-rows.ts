/** The bytes of a stored tensor, as they come, in the order in which its rows stand in a GGUF file. */
import { spareArray } from '../sources/spare-arrays';
import type { Layout } from './tensors';

export interface RowsOfTensor {
  layout: Layout;
  /** As the file has them: rows of columns, of so many bytes an element. A vector has one column. */
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

/** Bytes held at once: a piece, a group of rows that change places, or a whole tensor that is transposed. */
export function heldBytes({ layout, rows, columns, elementBytes }: RowsOfTensor): number {
  const row = columns * elementBytes;
  if (layout.kind === 'transposed') return 2 * rows * row;
  const group = layout.kind === 'rows' ? layout.rows * row : row;
  return 2 * Math.max(group, Math.min(PIECE_BYTES, rows * row));
}

export function arrangeRows(tensor: RowsOfTensor): RowArranger {
  const { layout, rows, columns, elementBytes } = tensor;
  const rowBytes = columns * elementBytes;
  const group = layout.kind === 'transposed' ? rows : layout.kind === 'rows' ? layout.rows : 1;
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

function arranged(
  piece: Uint8Array<ArrayBuffer>,
  { layout, rows, columns, elementBytes }: RowsOfTensor,
): Uint8Array<ArrayBuffer> {
  if (layout.kind === 'as_stored') return piece;
  const out = spareArray(piece.byteLength);
  if (layout.kind === 'transposed') {
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++) {
        const from = (column * rows + row) * elementBytes;
        const to = (row * columns + column) * elementBytes;
        for (let byte = 0; byte < elementBytes; byte++) out[to + byte] = piece[from + byte]!;
      }
    }
    return out;
  }
  const rowBytes = columns * elementBytes;
  const groupBytes = layout.rows * rowBytes;
  for (let begin = 0; begin < piece.byteLength; begin += groupBytes) {
    for (let row = 0; row < layout.rows; row++) {
      const from = begin + layout.from(row) * rowBytes;
      out.set(piece.subarray(from, from + rowBytes), begin + row * rowBytes);
    }
  }
  return out;
}
