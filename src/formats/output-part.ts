/** A part of an output: whole shards that one process of several writes, and the file that says so. */
import * as v from 'valibot';
import { AmalgamError } from '../errors';
import { counted } from './quantity';
import { parseJson } from './strict-json';

export const PART_FILE = 'amalgam-part.json';

/** Which part is written, of how many. */
export interface OutputPart {
  /** From 1. */
  index: number;
  of: number;
  /** Says of what merge: parts of another one do not belong to it. */
  run: string;
}

/** Contents of a {@link PART_FILE}. */
export interface PartRecord extends OutputPart {
  /** What computed: parts of one output come from the same. */
  engine: string;
  /** By name, of the inputs whose hash was not known: their bytes, and the sha256 of the pieces that this part has read. */
  inputs: Record<string, { byteLength: number; pieces: [piece: number, sha256: string][] }>;
}

const whole = v.pipe(v.number(), v.safeInteger(), v.minValue(0));
const schema = v.object({
  ...{ index: whole, of: whole, run: v.string(), engine: v.string() },
  inputs: v.record(
    v.string(),
    v.object({ byteLength: whole, pieces: v.array(v.strictTuple([whole, v.string()])) }),
  ),
});

/** Contents of a {@link PART_FILE}. @throws AmalgamError `JsonInvalid`, `LimitExceeded` */
export function parsePart(text: string): PartRecord {
  const parsed = v.safeParse(schema, parseJson(text, PART_FILE));
  if (parsed.success) return parsed.output;
  throw new AmalgamError(
    'JsonInvalid',
    `${PART_FILE}: this says nothing of a part.`,
    'Remove the folder of this part and merge the part again.',
  );
}

/**
 * The files of a part, contiguous and by their bytes: a file belongs to the part that its middle byte falls into, and
 * every part has one at least.
 * @param files all of an output, in order
 * @throws AmalgamError `Usage` where there are fewer files than parts
 */
export function filesOfPart<F extends { byteLength: number }>(
  files: readonly F[],
  { index, of }: Pick<OutputPart, 'index' | 'of'>,
): F[] {
  if (files.length < of) {
    throw new AmalgamError(
      'Usage',
      `The output has ${counted(files.length, 'file')} of weights, and a part is one file at least: it cannot be cut into ${of} parts.`,
      'Give fewer parts, or smaller files in the recipe (amalgam: shard_bytes).',
    );
  }
  const total = files.reduce((sum, { byteLength }) => sum + byteLength, 0);
  let before = 0;
  let last = 0;
  const parts = files.map(({ byteLength }, at) => {
    const wanted = 1 + Math.floor(((before + byteLength / 2) / total) * of);
    before += byteLength;
    // as many files are left as parts have none yet, and none is left out
    last = Math.min(Math.max(wanted, last, of - (files.length - 1 - at)), last + 1);
    return last;
  });
  return files.filter((_, at) => parts[at] === index);
}
