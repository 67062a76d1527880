/** What a plan costs: files to read and to download, bytes to write, memory. */

import { BLOCK } from '../../backend/kernel';
import { elementCount } from '../../inputs/opened-model';
import { PIECE_BYTES, tensorsToRead } from '../../inputs/row-map';
import type { TensorRef, TensorView } from '../../inputs/tensor-view';
import type { ModelFile, ModelFolder } from '../../sources/model-folder';
import type { ShardPlan } from '../../write/shard-plan';
import { isAsStored } from '../tensor/as-stored';
import { bytesPerElement, DEFAULT_DEVICE_BYTES } from '../tensor/device-budget';

import type { Plan, TensorPlan } from './plan';

/** Buffers outside the tiles: the shard writer's and one piece of a copied tensor, 8 MiB each. */
const FIXED_BYTES = 16 * 2 ** 20;

/**
 * Every stored tensor that an output tensor is made from, each once.
 * A contributor that only adds to the base needs nothing of its own but its factors.
 */
export function storedInputs(tensor: TensorPlan): TensorRef[] {
  if (tensor.copy) return tensorsToRead(tensor.copy);
  const views = storedViews(tensor);
  const refs = isAsStored(tensor)
    ? views.map(({ origin }) => origin)
    : views.flatMap((view) => [view.origin, ...factors(view)]).flatMap(tensorsToRead);
  return [...new Set(refs)];
}

function storedViews({ base, models }: TensorPlan): TensorView[] {
  return [...(base ? [base] : []), ...models.map(({ view }) => view)];
}

function factors({ lowRank, addend }: TensorView): TensorRef[] {
  const refs = lowRank ? [lowRank.a, lowRank.b, lowRank.magnitude] : [];
  return [...refs, addend?.tensor].filter((ref) => ref !== undefined);
}

/** Every weight file the tensors are read from, with the bytes of one pass over what is used of it. */
export function planInputs(
  tensors: readonly TensorPlan[],
  fileOf: (folder: string, file: string) => ModelFile,
): Plan['inputs'] {
  const inputs: Plan['inputs'] = [];
  const byFile = new Map<string, Map<string, Plan['inputs'][number]>>();
  for (const tensor of tensors) {
    for (const { folder, file, begin, end } of storedInputs(tensor)) {
      const files = byFile.get(folder) ?? new Map<string, Plan['inputs'][number]>();
      byFile.set(folder, files);
      let input = files.get(file);
      if (!input) {
        input = { folder, file, byteLength: fileOf(folder, file).byteLength, readBytes: 0 };
        files.set(file, input);
        inputs.push(input);
      }
      input.readBytes += end - begin;
    }
  }
  return inputs;
}

/**
 * Bytes of the Hub files a run needs and the cache does not have; files come whole.
 *
 * @param files folder and file of every input and every small file that is copied
 * @param cached bytes of files that are here already, whole or in part, by sha256
 */
export function bytesToDownload(
  files: Iterable<readonly [folder: ModelFolder, file: ModelFile]>,
  cached: ReadonlyMap<string, number>,
): number {
  const wanted = new Map<string, number>();
  for (const [folder, file] of files) {
    if (folder.origin.kind !== 'hub' || file.isMade) continue;
    const here = file.sha256 === undefined ? 0 : (cached.get(file.sha256) ?? 0);
    wanted.set(file.sha256 ?? `${folder.path}/${file.path}`, Math.max(0, file.byteLength - here));
  }
  return [...wanted.values()].reduce((sum, bytes) => sum + bytes, 0);
}

/** Bytes of all shards and of the texts among the small files; copied small files are counted by the caller. */
export function bytesToWrite(shards: readonly ShardPlan[], extras: Plan['extras'], copied: number): number {
  const texts = extras.reduce(
    (sum, { content }) => ('text' in content ? sum + new TextEncoder().encode(content.text).length : sum),
    0,
  );
  return shards.reduce((sum, shard) => sum + shard.byteLength, texts + copied);
}

/**
 * Memory of the run at its peak: the buffers of a tile on the device, the stored bytes of this tile and the next in
 * the worker, the factors of the tensor at work, stored and as f32, and pieces of rows that are gathered.
 */
export function peakBytes(tensors: readonly TensorPlan[]): number {
  const computed = tensors.filter((tensor) => !tensor.copy);
  const most = (of: (tensor: TensorPlan) => number, among = computed) =>
    among.reduce((peak, tensor) => Math.max(peak, of(tensor)), 0);
  const models = most((tensor) => tensor.models.length);
  const largest = Math.ceil(most((tensor) => tensor.elements) / BLOCK) * BLOCK;
  const changed = computed.filter((tensor) => !isAsStored(tensor));
  const tile = Math.min(largest, Math.floor(DEFAULT_DEVICE_BYTES / bytesPerElement(models)));
  const factorBytes = most(
    (tensor) =>
      storedViews(tensor)
        .flatMap(factors)
        .reduce((sum, ref) => sum + ref.end - ref.begin + 4 * elementCount(ref.shape), 0),
    changed,
  );
  // of this tile and of the next
  const pieces =
    2 * PIECE_BYTES * most((tensor) => storedViews(tensor).filter((v) => v.origin.rows).length, changed);
  return tile * bytesPerElement(models) + 2 * tile * 4 * (models + 1) + factorBytes + pieces + FIXED_BYTES;
}
