/**
 * Where bytes come from. The one seam between a file and everything above it: a sample asset, a local `File`, a Hub
 * object, an OPFS blob and a test buffer are all just this.
 */
export interface ByteSource {
  readonly byteLength: number;
  /**
   * Bytes `[begin, end)` as a fresh array the caller owns. Returns exactly `end - begin` bytes or throws; never fewer.
   * @throws AmalgamError when the bytes cannot be had, `Cancelled` when the signal fires.
   */
  read(begin: number, end: number, signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>>;
}
