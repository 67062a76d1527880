/**
 * Tensors of a GGUF file (gguf/read-header.ts): blocks along its rows, rows in llama.cpp's order, norms with their 1. They are
 * found by their names there, not by what lies beside them.
 */
import { READ_TYPES } from '../../gguf/block-types';
import { decodeBlocks } from '../../gguf/decoded-blocks';
import { giveBack, spareArray } from '../../sources/spare-arrays';
import type { ReadTensor, TensorRef } from '../tensor-view';
import { byRows, type QuantizedFormat } from './format';

export const ID = 'gguf';

interface Params {
  /** ggml's numbers of the types of `from`. */
  types: readonly number[];
  columns: number;
  /** Was added to every element. */
  plus: number;
  /** Rows that changed places among themselves: row i of the file is row `order[i]`; without, each is itself. */
  group?: number;
  order?: readonly number[];
  /** 1: groups are stored as [columns, rows]. */
  turned: number;
}

/** Rows of the file this far apart are read in one piece, with what lies between them. */
const GAP_ROWS = 64;

export const gguf: QuantizedFormat = {
  find: () => undefined,
  async open(from, given, read) {
    const { types, columns, plus, group = 1, order, turned } = given as unknown as Params;
    const places = placesOf(group, order);
    const half = group / from.length;
    const fileRow = (row: number) => {
      const at = places[row % group]!;
      const first = Math.floor(row / group) * half;
      return { part: Math.floor(at / half), row: first + (at % half) };
    };
    /** Rows [first, end) of a part, one after the other from `at` of `out` on. */
    const decode = async (part: number, first: number, end: number, out: Float32Array, at = 0) => {
      await fileRows(from[part]!, types[part]!, columns, first, end, read, out, at);
      const last = at + (end - first) * columns;
      if (plus !== 0) for (let i = at; i < last; i++) out[i]! -= plus;
    };
    if (turned) return turnedGroups({ columns, group, half, places }, from.length, decode);
    return byRows(columns, async (first, end) => {
      const out = floats((end - first) * columns);
      if (group === 1) {
        await decode(0, first, end, out);
        return out;
      }
      const wanted = Array.from({ length: end - first }, (_, i) => ({ ...fileRow(first + i), to: i }));
      wanted.sort((a, b) => a.part - b.part || a.row - b.row);
      const piece = new Float32Array(Math.min(wanted.length + GAP_ROWS, pieceRows(columns)) * columns);
      for (let at = 0; at < wanted.length; ) {
        const { part, row: begin } = wanted[at]!;
        let last = at;
        while (last + 1 < wanted.length && wanted[last + 1]!.part === part) {
          const next = wanted[last + 1]!.row;
          if (next - wanted[last]!.row > GAP_ROWS || (next + 1 - begin) * columns > piece.length) break;
          last++;
        }
        await decode(part, begin, wanted[last]!.row + 1, piece);
        for (; at <= last; at++) {
          const from = (wanted[at]!.row - begin) * columns;
          out.set(piece.subarray(from, from + columns), wanted[at]!.to * columns);
        }
      }
      return out;
    });
  },
};

/** Elements that are decoded at once, about. */
const PIECE = 2 ** 18;

function pieceRows(columns: number): number {
  return Math.max(GAP_ROWS, Math.ceil(PIECE / columns));
}

/** Numbers with any contents, in memory that was used before where there is some. */
function floats(count: number): Float32Array<ArrayBuffer> {
  return new Float32Array(spareArray(4 * count).buffer, 0, count);
}

/** Where each row of a group stands in the file. */
function placesOf(group: number, order: readonly number[] | undefined): Int32Array {
  const places = Int32Array.from({ length: group }, (_, row) => row);
  for (const [at, row] of (order ?? []).entries()) places[row] = at;
  return places;
}

/** Decodes rows [first, end) of a tensor as the file has them, to `out` from `at` on. */
async function fileRows(
  ref: TensorRef,
  type: number,
  columns: number,
  first: number,
  end: number,
  read: ReadTensor,
  out: Float32Array,
  at: number,
): Promise<void> {
  const { elements, bytes } = READ_TYPES.get(type)!;
  const rowBytes = (columns / elements) * bytes;
  const step = pieceRows(columns);
  for (let row = first; row < end; row += step) {
    const stored = await read(ref, row * rowBytes, Math.min(row + step, end) * rowBytes);
    decodeBlocks(type, stored, out, at + (row - first) * columns);
    giveBack(stored.buffer);
  }
}

/** Groups of [columns, rows], one after the other: a column of the file is what is read. */
function turnedGroups(
  { columns, group, half, places }: { columns: number; group: number; half: number; places: Int32Array },
  parts: number,
  decode: (part: number, first: number, end: number, out: Float32Array) => Promise<void>,
) {
  const size = group * columns;
  let kept: { index: number; values: Float32Array } | undefined;
  const groupAt = async (index: number) => {
    if (kept?.index === index) return kept.values;
    const values = new Float32Array(size);
    const all = await Promise.all(
      Array.from({ length: parts }, async (_, part) => {
        const out = new Float32Array(half * columns);
        await decode(part, index * half, (index + 1) * half, out);
        return out;
      }),
    );
    for (let row = 0; row < group; row++) {
      const at = places[row]!;
      const stored = all[Math.floor(at / half)]!;
      const begin = (at % half) * columns;
      for (let c = 0; c < columns; c++) values[c * group + row] = stored[begin + c]!;
    }
    kept = { index, values };
    return values;
  };
  return async (begin: number, end: number) => {
    const out = new Float32Array(end - begin);
    for (let at = begin; at < end; ) {
      const index = Math.floor(at / size);
      const to = Math.min(end, (index + 1) * size);
      out.set((await groupAt(index)).subarray(at - index * size, to - index * size), at - begin);
      at = to;
    }
    return out;
  };
}
