/** One PUT of bytes that are on disk, with progress: only XMLHttpRequest tells how much of a body is sent. */

export interface PutAnswer {
  status: number;
  /** Entity tag of what was stored, as the server quotes it. */
  etag: string | null;
}

/**
 * Sends a blob. The browser reads it from disk as it goes; no credentials or headers are added.
 * @param onSent called with the bytes sent since the last call
 * @throws Error when the connection fails or the signal fires
 */
export type PutBlob = (
  url: string,
  content: Blob,
  signal: AbortSignal,
  onSent: (bytes: number) => void,
) => Promise<PutAnswer>;

export const putBlob: PutBlob = (url, content, signal, onSent) =>
  new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const abort = () => request.abort();
    let sent = 0;
    const sentUpTo = (bytes: number) => {
      onSent(bytes - sent);
      sent = bytes;
    };
    const fail = () => {
      signal.removeEventListener('abort', abort);
      reject(new Error('the connection failed'));
    };
    request.upload.onprogress = ({ loaded }) => sentUpTo(Math.min(loaded, content.size));
    request.onload = () => {
      signal.removeEventListener('abort', abort);
      sentUpTo(content.size);
      resolve({ status: request.status, etag: request.getResponseHeader('ETag') });
    };
    request.onerror = fail;
    request.onabort = fail;
    request.open('PUT', url);
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) fail();
    else request.send(content);
  });
