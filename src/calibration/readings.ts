/** Records of each model's calibration tokens, so that they are generated once for every use: calibration, another density, λ. */
import type { BackendKind } from '../reports/backend';
import { openRecords, type RecordHeader } from '../store/masks';
import {
  type CalibrationSize,
  type CalibrationSource,
  calibrationHash,
  calibrationTitle,
  heldOutSize,
  type Reader,
  readingOf,
} from './calibration';

/** A contributor as importance sees it. */
export interface Contributor {
  /** As in the plan. */
  id: string;
  /** sha256 of all the files its weights come from. */
  model: string;
  source: CalibrationSource;
  /**
   * Opens it on the engine of the job. `write`: its weights stay on the device as far as there is room. `pass`: they come
   * and go, for it is run once; there is room for `rows` rows of activations at once.
   */
  open(use: { kind: 'write' } | { kind: 'pass'; rows: number }): Promise<OpenReader>;
}

export interface OpenReader extends Reader {
  close(): void;
}

interface Reading {
  sequences: number[][];
  /** Tokens the model generated now: 0 for a text that was given, or was stored. */
  writtenTokens: number;
}

interface ReadingRequest {
  /** Of the calibration. */
  size: CalibrationSize;
  use: 'calibration' | 'held-out';
  /** Both uses will come: a model that writes its text writes for both at once, which takes hardly longer than for one. */
  both?: boolean;
  engine: BackendKind;
  signal?: AbortSignal;
  onProgress?(tokens: number): void;
}

/**
 * Calibration tokens of a contributor: read from a record, or generated and tokenized now.
 * @throws AmalgamError as `readingOf` and the storage throw
 */
export async function readingFor(contributor: Contributor, request: ReadingRequest): Promise<Reading> {
  const { id, model, source } = contributor;
  const { size, use, both = false, engine, signal } = request;
  const calibration = await calibrationHash(source, size);
  const folder = await openRecords(
    JSON.stringify(['reading', 2, model, calibration, engine]),
    `${id}: ${calibrationTitle(source, size)}`,
  );
  const found = await folder.find<RecordHeader>(use);
  if (found) {
    const bytes = await found.read(0, 0, found.header.sections[0]!);
    const ids = new Uint32Array(bytes.buffer);
    return { sequences: cut(ids, size.length), writtenTokens: 0 };
  }
  const together = both && source.kind === 'self' && use === 'calibration';
  const also = together && !(await folder.find<RecordHeader>('held-out'));
  const reader = await contributor.open({ kind: 'write' });
  try {
    let before = 0;
    const sequences = await readingOf(source, size, reader, {
      use: also ? 'both' : use,
      ...(signal && { signal }),
      onProgress(done) {
        request.onProgress?.(done - before);
        before = done;
      },
    });
    const keep = (name: string, part: readonly (readonly number[])[]) =>
      folder.write<RecordHeader>({ name }, [new Uint8Array(Uint32Array.from(part.flat()).buffer)]);
    if (also) await keep('held-out', sequences.slice(size.windows));
    const mine = also ? sequences.slice(0, size.windows) : sequences;
    await keep(use, mine);
    return { sequences: mine, writtenTokens: source.kind === 'self' ? sequences.length * size.length : 0 };
  } finally {
    reader.close();
  }
}

/** Tokens that a model which writes its own text is about to write at most. */
export function tokensToWrite(size: CalibrationSize, use: 'calibration' | 'held-out' | 'both'): number {
  const { windows } = heldOutSize(size);
  return size.length * ((use === 'held-out' ? 0 : size.windows) + (use === 'calibration' ? 0 : windows));
}

function cut(ids: Uint32Array, length: number): number[][] {
  return Array.from({ length: ids.length / length }, (_, i) => [
    ...ids.subarray(i * length, (i + 1) * length),
  ]);
}

/** How often each token occurs, [vocab]. */
export function tokenCounts(sequences: readonly (readonly number[])[], vocab: number): Float64Array {
  const counts = new Float64Array(vocab);
  for (const ids of sequences) for (const id of ids) counts[id]!++;
  return counts;
}
