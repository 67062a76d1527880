/** Sha256 of a piece [32 bytes], made beside this thread. Takes a copy of the bytes before it returns. */
export async function pieceDigest(piece: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', piece));
}
