import { isTreeHash, TREE_PREFIX } from '../../formats/hashes';

/** A hash by its kind and hex digits: that of a whole file, or that of its pieces (docs/formats.md). */
export function hashWords(hash: string): { kind: 'sha256' | 'tree hash'; digits: string } {
  return isTreeHash(hash)
    ? { kind: 'tree hash', digits: hash.slice(TREE_PREFIX.length) }
    : { kind: 'sha256', digits: hash };
}
