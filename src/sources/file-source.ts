import { AmalgamError } from '../errors';
import { bytesOf, READ_DEADLINE_MS, readerOf, rooted, withinDeadline } from '../platform';
import { type ByteSource, checkByteRange } from './byte-source';
import { throwIfCanceled } from './cancellation';
import { giveBack, spareArray } from './spare-arrays';

/** The bytes of a file from one place on, in order, through memory that is used again. */
interface FileStream {
  /** Fills the array, whose memory moves. @returns fewer bytes where the file ends, undefined where no answer comes */
  read(into: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer> | undefined>;
  close(): void;
}

/** Undefined where the browser's files are no streams of bytes. */
function streamOf(file: Blob): FileStream | undefined {
  let reader: ReadableStreamBYOBReader;
  try {
    reader = readerOf(file);
  } catch (thrown) {
    if (thrown instanceof TypeError) return undefined;
    throw thrown;
  }
  // Chromium collects a stream in the middle of a read, too, that nobody holds but who waits for it
  const owner = { file, reader };
  return {
    async read({ buffer, byteOffset, byteLength }) {
      let memory = buffer;
      for (let filled = 0; ; ) {
        const view = new Uint8Array(memory, byteOffset + filled, byteLength - filled);
        const reading = rooted(owner, reader.read(view, { min: view.length }));
        const answer = await withinDeadline(reading, READ_DEADLINE_MS);
        if (!answer) return undefined;
        const { value, done } = answer.value;
        if (value) memory = value.buffer;
        filled += value?.length ?? 0;
        if (done || filled === byteLength) return new Uint8Array(memory, byteOffset, filled);
      }
    },
    // what failed before has been said
    close: () => void rooted(owner, reader.cancel()).catch(() => undefined),
  };
}

/** Whether another worker can read a file that it is sent: Node 20 dies of that. */
const filesCross = 'FileReaderSync' in globalThis;

/** Reads of fewer bytes are slices of their own: opening a stream takes longer. */
const STREAMED_BYTES = 256 * 2 ** 10;
/** Bytes of one stream: Chromium looks at its beginning alone whether the file was changed. */
const STREAM_BYTES = 64 * 2 ** 20;

/**
 * A source over a `File` or `Blob`, read in place: by slices, and by a stream where each read begins at the end of the one
 * before, for which Chromium takes a third of the processor time. Browsers refuse to read a file that was changed, moved
 * or deleted after it was picked (`NotReadableError`, `NotFoundError`); that becomes `FileChanged`.
 */
export function fileSource(file: Blob, name: string): ByteSource {
  let open: { stream: FileStream; at: number; end: number } | undefined;
  /** Where the last read that was asked for ends. */
  let last = 0;
  let turn: Promise<unknown> = Promise.resolve();

  const sliced = (begin: number, end: number) => bytesOf(file.slice(begin, end));
  const streamed = async (begin: number, end: number, into?: Uint8Array<ArrayBuffer>) => {
    if (open?.at !== begin || end > open.end) {
      open?.stream.close();
      const until = Math.max(end, begin + STREAM_BYTES);
      const stream = end - begin >= STREAMED_BYTES ? streamOf(file.slice(begin, until)) : undefined;
      open = stream && { stream, at: begin, end: until };
    }
    if (!open) return sliced(begin, end);
    open.at = end;
    const bytes = await open.stream.read(spareArray(end - begin)).catch(() => undefined);
    if (!bytes) {
      open = undefined;
      // says what is wrong with the file, if it is the file
      return sliced(begin, end);
    }
    if (!into || bytes.length !== into.length) return bytes;
    into.set(bytes);
    giveBack(bytes.buffer);
    return into;
  };

  return {
    byteLength: file.size,
    ...(filesCross && { origin: async () => ({ kind: 'file' as const, file, name }) }),
    async read(begin, end, signal, into) {
      throwIfCanceled(signal);
      checkByteRange(begin, end, file.size, name);
      if (begin === end) return new Uint8Array(0);
      const isNext = begin === last;
      last = end;
      const reading = isNext ? turn.then(() => streamed(begin, end, into)) : sliced(begin, end);
      if (isNext) turn = reading.catch(() => undefined);
      const bytes = await reading.catch((cause: unknown) => {
        throw cause instanceof AmalgamError ? cause : fileChanged(name, cause);
      });
      throwIfCanceled(signal);
      if (bytes.byteLength !== end - begin) throw fileChanged(name);
      return bytes;
    },
  };
}

function fileChanged(name: string, cause?: unknown): AmalgamError {
  return new AmalgamError(
    'FileChanged',
    `${name} can no longer be read: it was changed, moved or deleted after it was opened.`,
    'Open the folder again.',
    { cause },
  );
}
