/** The bytes of a file from its front on, unpacked where they are packed, and as text. */
import { AmalgamError } from '../errors';
import { notUtf8, refusePointer } from '../formats/conversations';
import { piecesOf } from '../platform';
import type { ByteSource } from '../sources/byte-source';
import { throwIfCanceled } from '../sources/cancellation';

/** Bytes asked for at once: the first piece is small, since a little text is often enough. */
const FIRST_BYTES = 1 << 18;
const NEXT_BYTES = 1 << 21;

/**
 * Reads a file piece by piece, and no further than asked.
 * @throws AmalgamError `LfsPointer`, `DatasetInvalid` for what is no gzip, `Canceled`, and what the source throws
 */
export async function* openStream(
  source: ByteSource,
  name: string,
  gzip: boolean,
  signal?: AbortSignal,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  if (!gzip) return yield* pieces(source, name, signal);
  let failed: unknown;
  const packed = pieces(source, name, signal);
  const stream = new ReadableStream<Uint8Array<ArrayBuffer>>({
    async pull(controller) {
      try {
        const { done, value } = await packed.next();
        if (done) controller.close();
        else controller.enqueue(value);
      } catch (thrown) {
        failed = thrown;
        controller.error(thrown);
      }
    },
  });
  try {
    yield* piecesOf(stream.pipeThrough(new DecompressionStream('gzip')));
  } catch (cause) {
    if (failed !== undefined) throw failed;
    throw new AmalgamError(
      'DatasetInvalid',
      `${name} cannot be decompressed: it is incomplete, or not gzip.`,
      'Choose another file.',
      { cause },
    );
  }
}

async function* pieces(source: ByteSource, name: string, signal?: AbortSignal) {
  for (let begin = 0, size = FIRST_BYTES; begin < source.byteLength; begin += size, size = NEXT_BYTES) {
    throwIfCanceled(signal);
    const bytes = await source.read(begin, Math.min(begin + size, source.byteLength), signal);
    if (begin === 0) refusePointer(bytes, name);
    yield bytes;
  }
}

/**
 * Text of UTF-8 bytes, a mark at the front left out.
 * @throws AmalgamError `NotUtf8`
 */
export async function* decodeText(
  stream: AsyncIterable<Uint8Array<ArrayBuffer>>,
  name: string,
): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const decode = (bytes?: Uint8Array<ArrayBuffer>) => {
    try {
      return bytes ? decoder.decode(bytes, { stream: true }) : decoder.decode();
    } catch (cause) {
      throw notUtf8(name, cause);
    }
  };
  for await (const bytes of stream) yield decode(bytes);
  const rest = decode();
  if (rest !== '') yield rest;
}
