import { AmalgamError } from '../errors';
import { SUMS_FILE } from '../formats/names';
import { sha256Of } from '../sources/sha256';
import { giveBack } from '../sources/spare-arrays';
import type { Destination, FileSink } from './destination';
import { writeText } from './write-text';

interface Piece {
  begin: number;
  end: number;
  digest: Promise<ArrayBuffer>;
}

/**
 * The same destination, but what was written is read back once a file is closed, piece by piece, while the next one is
 * being written; `commit` waits for that and adds `SHA256SUMS`. A disk, a cable or a memory that turns a bit on the way
 * is found before the output is called finished.
 * @throws IntegrityError from `commit`, naming the file and the bytes that differ
 */
export function checkedDestination(inner: Destination): Destination {
  const { left, remains } = inner;
  if (!left) return inner;
  const sums = new Map<string, string>();
  let checks: Promise<void> = Promise.resolve();
  let isOver = false;

  async function check(path: string, from: number, pieces: readonly Piece[], sha256?: string): Promise<void> {
    const source = isOver ? undefined : await left!(path);
    if (isOver) return;
    const length = pieces.at(-1)?.end ?? from;
    if (source?.byteLength !== length) throw notAsWritten(path, 0, length);
    for (const { begin, end, digest } of pieces) {
      const bytes = await source.read(begin, end);
      const stored = await crypto.subtle.digest('SHA-256', bytes);
      giveBack(bytes.buffer);
      if (hex(stored) !== hex(await digest)) throw notAsWritten(path, begin, end);
      if (isOver) return;
    }
    // the beginning of a resumed file was written by another run: only the hash of the whole file speaks for it
    const isWhole = from === 0 && (sha256 !== undefined || pieces.length === 1);
    const whole = isWhole ? (sha256 ?? hex(await pieces[0]!.digest)) : await sha256Of(source);
    if (sha256 !== undefined && whole !== sha256) throw notAsWritten(path, 0, from);
    sums.set(path, whole);
  }

  function checkedSink(path: string, sink: FileSink, from: number): FileSink {
    const pieces: Piece[] = [];
    let at = from;
    return {
      async write(bytes) {
        // the digest takes a copy at once; the array may be gone when `write` resolves
        pieces.push({
          begin: at,
          end: at + bytes.byteLength,
          digest: crypto.subtle.digest('SHA-256', bytes),
        });
        at += bytes.byteLength;
        await sink.write(bytes);
      },
      ...(sink.flush ? { flush: () => sink.flush!() } : {}),
      async close(sha256) {
        await sink.close();
        checks = checks.then(() => check(path, from, pieces, sha256));
        // it is thrown by `commit`, if there is one
        checks.catch(() => undefined);
      },
    };
  }

  return {
    ...inner,
    create: async (path, length) => checkedSink(path, await inner.create(path, length), 0),
    async commit() {
      await checks;
      const lines = [...sums]
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([path, sha256]) => `${sha256}  ${path}\n`);
      await writeText(inner, SUMS_FILE, lines.join(''));
      await inner.commit();
    },
    async discard() {
      isOver = true;
      await inner.discard();
    },
    ...(remains && {
      remains: {
        ...remains,
        async adopt(path, bytes, sha256) {
          await remains.adopt(path, bytes, sha256);
          sums.set(path, sha256);
        },
        ...(remains.reopen && {
          reopen: async (path, bytes, length) =>
            checkedSink(path, await remains.reopen!(path, bytes, length), bytes),
        }),
        async keep() {
          isOver = true;
          await remains.keep();
        },
      },
    }),
  };
}

function notAsWritten(path: string, begin: number, end: number): AmalgamError {
  return new AmalgamError(
    'IntegrityError',
    `${path} was not stored as it was written: bytes ${begin} to ${end} differ when they are read back.`,
    'Check the disk and the memory of this machine, then resume the merge: the file is written again.',
  );
}

function hex(digest: ArrayBuffer): string {
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}
