/** What a hashing thread (sha256-thread.ts) is asked: to go on from a state, to take bytes, to answer. */
export type HashRequest = { state: Uint8Array } | { bytes: Uint8Array<ArrayBuffer> } | { digest: true };
