/** Bytes as lower-case hex digits. */
export function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Marks a tree hash (src/sources/tree-hash.ts) among hashes of files; a plain sha256 is its 64 hex digits alone. */
export const TREE_PREFIX = 'tree:';

export function isTreeHash(hash: string): boolean {
  return hash.startsWith(TREE_PREFIX);
}
