/** A GGUF file as it is written beside the merge: one part for every tensor of the merge, in the merge's order. */
import type { Backend } from '../backend/backend';
import { rowBytes } from './block-types';
import { encodeRows } from './encoded-rows';
import type { GgufPlan } from './gguf-plan';
import { fileLength, ggufBeginning } from './gguf-plan';
import type { GgufValue } from './header';
import { arrangeRows, type RowArranger } from './row-arranger';

/** As `ShardPlan` of the merge describes a file. */
export interface GgufFile {
  file: string;
  header: Uint8Array<ArrayBuffer>;
  /** Parts by the merge's tensors; one that the file leaves out has no bytes. */
  tensors: { name: string; byteLength: number }[];
  byteLength: number;
}

/**
 * @param order the merge's names of its tensors, in the order in which they are finished
 * @param more metadata of the run
 */
export function ggufFile(
  file: string,
  plan: GgufPlan,
  order: readonly string[],
  more: readonly (readonly [key: string, value: GgufValue])[] = [],
): GgufFile {
  const header = ggufBeginning(plan, more, order);
  const tensors = order.map((name) => ({
    name,
    byteLength: bytesOf(plan, name),
  }));
  const byteLength = tensors.reduce((sum, tensor) => sum + tensor.byteLength, header.byteLength);
  return { file, header, tensors, byteLength };
}

function bytesOf({ tensors }: GgufPlan, name: string): number {
  const tensor = tensors.get(name);
  return tensor ? fileLength(tensor) : 0;
}

/** Pieces that an engine may have before the first is written. */
const PIECES_AHEAD = 2;

/** Takes the finished tensors of a merge one after the other and hands on the bytes of the file. */
export interface GgufEncoder {
  /** Bytes of the tensor at work, as the merge writes them. */
  append(bytes: Uint8Array<ArrayBuffer>): Promise<void>;
  /** All bytes of that tensor have come; those of the file are handed on when it resolves. */
  finishTensor(): Promise<void>;
}

/** Weights of the columns of a tensor, by the merge's name of it; of most tensors there are none. */
export type ColumnImportance = ReadonlyMap<string, Float32Array<ArrayBuffer>>;

interface GgufEncoderOptions {
  plan: GgufPlan;
  /** The tensors to come, in order. */
  names: readonly string[];
  /** Engines of the processor that take the pieces in turn; they stay the caller's. */
  engines: readonly Backend[];
  importance?: ColumnImportance;
  /** Gets the bytes that follow the file's header; one call at a time. */
  write(bytes: Uint8Array<ArrayBuffer>): Promise<void>;
}

export function ggufEncoder({ plan, names, engines, importance, write }: GgufEncoderOptions): GgufEncoder {
  let at = 0;
  let arranger: RowArranger | undefined;
  let turn = 0;
  /** Pieces at work, in the order of the file. */
  const pieces: Promise<Uint8Array<ArrayBuffer>>[] = [];
  /** Second halves of the rows, which follow when all first ones are written. */
  const waiting: Uint8Array<ArrayBuffer>[] = [];
  const writeFirst = async () => {
    const piece = await pieces.shift()!;
    const { second, layout, type, columns } = plan.tensors.get(names[at]!)!;
    if (second === undefined || layout.kind === 'as_stored') return write(piece);
    const half = (layout.rows! / 2) * rowBytes(type, columns);
    for (let begin = 0; begin < piece.byteLength; begin += 2 * half) {
      waiting.push(piece.slice(begin + half, begin + 2 * half));
      await write(piece.slice(begin, begin + half));
    }
  };
  const fill = async (bytes: number) => {
    if (bytes > 0) await write(new Uint8Array(bytes));
  };
  return {
    async append(bytes) {
      const tensor = plan.tensors.get(names[at]!);
      if (!tensor) return;
      arranger ??= arrangeRows(tensor);
      const weights = importance?.get(names[at]!);
      await arranger.push(bytes, async (rows) => {
        const piece = encodeRows(engines[turn++ % engines.length]!, {
          ...tensor,
          tensor: tensor.name,
          bytes: rows,
          ...(weights ? { importance: weights } : {}),
        });
        // a failure shows when its turn to be written comes
        piece.catch(() => undefined);
        pieces.push(piece);
        while (pieces.length > PIECES_AHEAD * engines.length) await writeFirst();
      });
    },
    async finishTensor() {
      while (pieces.length > 0) await writeFirst();
      const tensor = plan.tensors.get(names[at]!);
      const filling = bytesOf(plan, names[at]!) - (tensor?.byteLength ?? 0);
      const parts = tensor?.second === undefined ? 1 : 2;
      await fill(filling / parts);
      for (const bytes of waiting.splice(0)) await write(bytes);
      if (parts === 2) await fill(filling / 2);
      arranger = undefined;
      at++;
    },
  };
}
