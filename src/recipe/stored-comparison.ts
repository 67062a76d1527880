/** Comparison of shards that are merged again with those that are stored. */
import { readHeader } from '../inputs/header';
import type { ShardComparison } from '../reports/merge';
import type { ModelFile } from '../sources/model-folder';
import { giveBack } from '../sources/spare-arrays';
import type { FilePlan } from '../write/shard-plan';

/** Called when a shard begins; the function it returns, with the bytes of its tensors in order. */
export type ShardWatch = (shard: FilePlan) => Promise<(bytes: Uint8Array<ArrayBuffer>) => Promise<void>>;

/**
 * Compares tensor by tensor, wherever a tensor stands in the stored file.
 * @param merged the model they belong to, for messages
 * @param stored a stored shard
 * @param onShard told how a shard compares, when it is begun; its tensors follow while they come
 */
export function compareStored(
  merged: string,
  stored: (file: string) => ModelFile,
  onShard: (comparison: ShardComparison) => void,
): ShardWatch {
  return async ({ file, header, tensors }) => {
    const model = stored(file);
    const source = model.open();
    const there = await readHeader(model, merged);
    const first = await source.read(0, Math.min(header.byteLength, source.byteLength));
    const comparison: ShardComparison = { file, isHeaderSame: isSame(first, header), differing: [] };
    onShard(comparison);
    let index = 0;
    let at = 0;
    return async (bytes) => {
      for (let from = 0; from < bytes.byteLength; ) {
        const tensor = tensors[index]!;
        const length = Math.min(tensor.byteLength - at, bytes.byteLength - from);
        const old = there.get(tensor.name);
        const isThere = old !== undefined && old.end - old.begin === tensor.byteLength;
        if (comparison.differing.at(-1) !== tensor.name && length > 0) {
          const read = isThere ? await source.read(old.begin + at, old.begin + at + length) : undefined;
          if (!read || !isSame(read, bytes.subarray(from, from + length)))
            comparison.differing.push(tensor.name);
          if (read) giveBack(read.buffer);
        }
        from += length;
        at += length;
        if (at === tensor.byteLength) {
          index++;
          at = 0;
        }
      }
    };
  };
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}
