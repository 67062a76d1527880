/** A browser's `Worker` over a thread of Node, as far as Amalgam uses one. */
import { Worker as Thread } from 'node:worker_threads';

export class NodeWorker {
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onerror: ((event: { message: string }) => void) | null = null;
  readonly #thread: Thread;

  constructor(url: string) {
    this.#thread = new Thread(new URL(url));
    this.#thread.on('message', (data) => this.onmessage?.({ data }));
    this.#thread.on('error', ({ message }) => this.onerror?.({ message }));
    // a command that is done does not wait for its threads
    this.#thread.unref();
  }

  postMessage(message: unknown, transfer: ArrayBuffer[] = []): void {
    this.#thread.postMessage(message, transfer);
  }

  terminate(): void {
    void this.#thread.terminate();
  }
}
