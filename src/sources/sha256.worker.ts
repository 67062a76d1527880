/** A sha256 in a thread of its own (sha256-thread.ts). */
import { beginSha256, type Sha256 } from './sha256';
import type { HashRequest } from './sha256-request';

let hash: Promise<Sha256>;

self.onmessage = ({ data }: MessageEvent<HashRequest>) => {
  if ('state' in data) hash = beginSha256(data.state);
  else void answer(data);
};

async function answer(request: Exclude<HashRequest, { state: unknown }>): Promise<void> {
  if ('bytes' in request) {
    (await hash).update(request.bytes);
    self.postMessage({ spent: request.bytes.buffer }, { transfer: [request.bytes.buffer] });
  } else {
    self.postMessage({ digest: (await (await hash).copy()).digest() });
  }
}
