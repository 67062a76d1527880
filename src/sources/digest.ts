/** Sha256 [32 bytes], in the thread that calls. Takes a copy of the bytes before it returns. */
export async function digest(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
}
