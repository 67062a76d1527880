import { AmalgamError } from '../errors';
import { checkByteRange } from './byte-range';
import type { ByteSource } from './byte-source';
import type { RequestSubject } from './http-error';
import { Retryable, retrying, type Transfer } from './retrying';
import { fetchOk, readBody } from './transfer';

/** A file behind a URL, as its listing describes it. */
export interface RangeTarget {
  url: string;
  byteLength: number;
  subject: RequestSubject;
  /** Headers for each request, asked for every time: a token may be given or renewed between two pieces. */
  headers?: () => Record<string, string>;
}

/**
 * A source over an HTTP URL; each read is one Range request (more when the connection is cut: a read goes on at the
 * byte where it was cut). A read is accepted only as status 206 with `Content-Range` exactly as asked and exactly
 * that many bytes; the whole file may also come as a plain 200 of exactly its length.
 * @throws RangeIgnored when the server sends the whole file for a part, TransferInvalid when what it sends is not
 *   what was asked, Offline, RateLimited, HubError when the tries are used up, Unauthorized, Gated and NotFound at once.
 */
export function rangeSource(target: RangeTarget, transfer: Transfer = {}): ByteSource {
  const { byteLength, subject } = target;
  return {
    byteLength,
    async read(begin, end, signal) {
      checkByteRange(begin, end, byteLength, subject.name);
      const bytes = new Uint8Array(end - begin);
      if (begin === end) return bytes;
      let got = 0;
      await retrying(
        async (attemptSignal, received) => {
          const from = begin + got;
          const headers = { ...target.headers?.(), Range: `bytes=${from}-${end - 1}` };
          const response = await fetchOk(target.url, headers, subject, transfer, attemptSignal);
          try {
            checkAnswer(response, from, end, target);
            await readBody(response, (chunk) => {
              if (got + chunk.length > bytes.length) throw tooLong(subject);
              bytes.set(chunk, got);
              got += chunk.length;
              received(chunk.length);
            });
            if (got < bytes.length) throw wrong(subject, `ended ${bytes.length - got} bytes early`);
          } catch (thrown) {
            // Bytes before a cut are good; of an answer that is wrong in itself nothing is kept.
            if (thrown instanceof Retryable) got = 0;
            // Ends the transfer; on a stream that has already failed there is nothing left to end.
            await response.body?.cancel().catch(() => undefined);
            throw thrown;
          }
        },
        subject,
        transfer,
        signal,
      );
      return bytes;
    },
  };
}

/** @throws Retryable unless the response is exactly bytes `[begin, end)` of a file of the listed length. */
function checkAnswer(response: Response, begin: number, end: number, target: RangeTarget): void {
  const { byteLength, subject } = target;
  if (response.status === 200) {
    if (begin === 0 && end === byteLength) return;
    const final = new AmalgamError(
      'RangeIgnored',
      `${subject.host} sent all of ${subject.name} where a part was asked for.`,
      'This server cannot send parts of files. Use another hub, or download the model and open it from disk.',
    );
    throw new Retryable('content', final);
  }
  if (response.status !== 206) throw wrong(subject, `came with status ${response.status}`);
  const range = response.headers.get('Content-Range');
  const asked = `bytes ${begin}-${end - 1}/${byteLength}`;
  if (range !== asked) throw wrong(subject, `came as "${range ?? 'no range'}" instead of "${asked}"`);
}

function tooLong(subject: RequestSubject): Retryable {
  return wrong(subject, 'is longer than asked for');
}

function wrong(subject: RequestSubject, what: string): Retryable {
  const final = new AmalgamError(
    'TransferInvalid',
    `What ${subject.host} sent for ${subject.name} ${what}.`,
    'Start again. If it happens again, something between you and the server alters the file: try another network.',
  );
  return new Retryable('content', final);
}
