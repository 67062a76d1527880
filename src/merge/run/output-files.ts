/** What a job writes besides the shards, and the hashes of what it reads. */
import { AmalgamError } from '../../errors';
import { displayName } from '../../formats/names';
import { buildShardIndex, SHARD_INDEX } from '../../formats/shard-index';
import type { OpenModels } from '../../host/models';
import type { Inputs } from '../../host/weight-inputs';
import { inputName } from '../../inputs/input-name';
import { sha256Of } from '../../sources/sha256';
import { openCached } from '../../store/cached-source';
import type { Destination } from '../../write/destination';
import type { ShardPlan } from '../../write/shard-plan';
import type { Plan } from '../plan/plan';

/** sha256 of every input: the Hub's own (verified at download), else computed here. */
export async function hashInputs(
  files: Plan['inputs'],
  models: OpenModels,
  inputs: Inputs,
  signal: AbortSignal,
  meter: { begin(bytes: number): void; advance(bytes: number, name: string): void },
): Promise<Map<string, string>> {
  const hashes = new Map<string, string>();
  const unknown = files.filter((input) => {
    const { sha256 } = models.file(input.folder, input.file).file;
    if (sha256 !== undefined) hashes.set(inputName(input.folder, input.file), sha256);
    return sha256 === undefined;
  });
  if (unknown.length > 0) {
    meter.begin(unknown.reduce((sum, input) => sum + input.byteLength, 0));
  }
  for (const input of unknown) {
    const name = inputName(input.folder, input.file);
    const sha256 = await sha256Of(inputs.source(name), signal, (bytes) => meter.advance(bytes, name));
    const { claimedSha256 = sha256 } = models.file(input.folder, input.file).file;
    if (sha256 !== claimedSha256) throw otherBytes(name);
    hashes.set(name, sha256);
  }
  return hashes;
}

function otherBytes(name: string): AmalgamError {
  return new AmalgamError(
    'IntegrityError',
    `${displayName(name)} in the Hugging Face cache has other bytes than its name there says: it was changed or damaged.`,
    'Remove the model from that cache (hf cache rm) and get it again.',
  );
}

/** Config, tokenizer, card and recipe. */
export async function writeSmallFiles(
  extras: Plan['extras'],
  models: OpenModels,
  destination: Destination,
  signal: AbortSignal,
): Promise<void> {
  for (const { path, content } of extras) {
    if ('text' in content) {
      await writeFile(destination, path, new TextEncoder().encode(content.text));
      continue;
    }
    const { folder, file } = models.file(content.folder, content.file);
    const source = await openCached(folder, file, { signal });
    try {
      await writeFile(destination, path, await source.read(0, source.byteLength, signal));
    } finally {
      source.close();
    }
  }
}

/** The index of several shards comes last: without it the folder does not load. */
export async function writeIndex(destination: Destination, shards: readonly ShardPlan[]): Promise<void> {
  const entries = shards.flatMap((s) => s.tensors.map((t) => [t.name, s.file] as const));
  const text = buildShardIndex(entries, dataBytes(shards));
  await writeFile(destination, SHARD_INDEX, new TextEncoder().encode(text));
}

/** Bytes of tensor data, without the headers. */
export function dataBytes(shards: readonly ShardPlan[]): number {
  return shards.reduce((sum, s) => sum + s.byteLength - s.header.byteLength, 0);
}

async function writeFile(
  destination: Destination,
  path: string,
  bytes: Uint8Array<ArrayBuffer>,
): Promise<void> {
  const sink = await destination.create(path);
  await sink.write(bytes);
  await sink.close();
}
