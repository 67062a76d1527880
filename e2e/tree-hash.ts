/** The tree hash by its definition, with Node's own sha256. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest();

export function treeHashOf(bytes: Uint8Array): string {
  const leaves: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += 2 ** 21) leaves.push(sha256(bytes.subarray(at, at + 2 ** 21)));
  return `tree:${sha256(Buffer.concat(leaves)).toString('hex')}`;
}

export function treeHashOfFile(path: string): string {
  return treeHashOf(readFileSync(path));
}
