/** Weights that several runners of one model read side by side: each piece comes from the source once. */
import { spareArray } from '../sources/spare-arrays';
import type { WeightSource } from './weight-source';

export interface SharedWeights {
  /** The source as each of the runners sees it. */
  source: WeightSource;
  /** How many runners are going to ask for what is read from now on. */
  readers(count: number): void;
  /** Lets go of pieces that not every runner has asked for. */
  forget(): void;
}

/** Shares a source. A piece is kept until as many have asked for it as there are readers; the last gets it without a copy. */
export function shareWeights(source: WeightSource): SharedWeights {
  const pieces = new Map<string, { bytes: Promise<Uint8Array<ArrayBuffer>>; left: number }>();
  let count = 1;
  return {
    source: {
      ...source,
      async read(name, begin, end, signal) {
        const key = `${begin} ${end} ${name}`;
        const piece = pieces.get(key) ?? { bytes: source.read(name, begin, end, signal), left: count };
        piece.left--;
        if (piece.left > 0) pieces.set(key, piece);
        else pieces.delete(key);
        // whoever asked before has its copy by then: they wait for the same promise
        const isLast = piece.left <= 0;
        const bytes = await piece.bytes;
        if (isLast) return bytes;
        const copy = spareArray(bytes.length);
        copy.set(bytes);
        return copy;
      },
    },
    readers(wanted) {
      count = wanted;
    },
    forget: () => pieces.clear(),
  };
}
