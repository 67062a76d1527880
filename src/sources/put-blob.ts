/** One PUT of bytes that are on disk, with progress: in a browser only XMLHttpRequest tells how much of a body is sent. */

interface PutAnswer {
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
  typeof XMLHttpRequest === 'undefined'
    ? putByFetch(url, content, signal, onSent)
    : putByRequest(url, content, signal, onSent);

/** Origins that the policy of the page kept us from (Content-Security-Policy, connect-src). */
const blocked = new Set<string>();
if (typeof XMLHttpRequest !== 'undefined') {
  globalThis.addEventListener('securitypolicyviolation', ({ blockedURI }) => {
    if (URL.canParse(blockedURI)) blocked.add(new URL(blockedURI).origin);
  });
}

/** Whether the policy of the page stopped a request to the address. */
export function isBlocked(url: string): boolean {
  return blocked.has(new URL(url).origin);
}

const putByFetch: PutBlob = async (url, content, signal, onSent) => {
  const answer = await fetch(url, { method: 'PUT', body: content, signal });
  onSent(content.size);
  return { status: answer.status, etag: answer.headers.get('ETag') };
};

const putByRequest: PutBlob = (url, content, signal, onSent) =>
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
