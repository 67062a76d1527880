/** Bytes as lower-case hex digits. */
export function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Bytes of hex digits. */
export function bytesOfHex(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}

/** Sha256 of a text in UTF-8, as hex digits. */
export async function textSha256(text: string): Promise<string> {
  return hex(new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))));
}

/** Marks a tree hash (src/sources/tree-hash.ts) among hashes of files; a plain sha256 is its 64 hex digits alone. */
export const TREE_PREFIX = 'tree2:';

/** Marks the tree hash of outputs of before, whose pieces have no parts. */
export const OLD_TREE_PREFIX = 'tree:';

export function isTreeHash(hash: string): boolean {
  return hash.startsWith(TREE_PREFIX) || hash.startsWith(OLD_TREE_PREFIX);
}
