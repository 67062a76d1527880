/** Files of a job besides the shards. */

import { AmalgamError } from '../../errors';
import { fileFault } from '../../formats/file-fault';
import { buildShardIndex, SHARD_INDEX } from '../../formats/shard-index';
import type { OpenModels } from '../../host/models';
import { inputName } from '../../inputs/stored-tensor';
import { openCached } from '../../store/cached-source';
import type { Destination } from '../../write/destination';
import { writeWhole } from '../../write/output-commit';
import { indexedFiles, type ShardPlan } from '../../write/shard-plan';
import { DAMAGED } from '../plan/other-files';
import type { Plan } from '../plan/plan';

/** Config, tokenizer, card and recipe. @throws AmalgamError `JsonInvalid` for a copied file that is none or not whole */
export async function writeSmallFiles(
  extras: Plan['extras'],
  models: OpenModels,
  destination: Destination,
  signal: AbortSignal,
): Promise<void> {
  for (const { path, content } of extras) {
    if ('text' in content) {
      await writeWhole(destination, path, content.text);
      continue;
    }
    const { folder, file } = models.file(content.folder, content.file);
    const source = await openCached(folder, file, { signal });
    try {
      const bytes = await source.read(0, source.byteLength, signal);
      const fault = fileFault(file.path, bytes);
      if (fault !== undefined)
        throw new AmalgamError(
          'JsonInvalid',
          `${inputName(content.folder, content.file)} ${fault}.`,
          DAMAGED,
        );
      await writeWhole(destination, path, bytes);
    } finally {
      source.close();
    }
  }
}

/** The index of several shards comes last: without it the folder does not load. */
export async function writeIndex(destination: Destination, shards: readonly ShardPlan[]): Promise<void> {
  const indexed = indexedFiles(shards);
  if (indexed.length === 0) return;
  const entries = indexed.flatMap((s) => s.tensors.map((t) => [t.name, s.file] as const));
  const text = buildShardIndex(entries, dataBytes(indexed));
  await writeWhole(destination, SHARD_INDEX, text);
}

/** Bytes of tensor data, without the headers. */
export function dataBytes(shards: readonly ShardPlan[]): number {
  return shards.reduce((sum, s) => sum + s.byteLength - s.header.byteLength, 0);
}
