import { moduleFolder, nameInFile } from '../../formats/module-names';
import { ADAPTER_WEIGHTS } from '../../formats/peft-config';
import { DEFAULT_SHARD_BYTES } from '../../formats/recipe';
import { tensorBytes } from '../../formats/safetensors-header';
import { buildSafetensorsHeader, sortForFile } from '../../formats/safetensors-write';
import { inputName } from '../../inputs/stored-tensor';
import type { ShardPlan } from '../../write/shard-plan';
import { AMALGAM_VERSION } from '../version';
import { originText, type Plan, type TensorPlan } from './plan';

/**
 * Cuts the output into files: tensors go in the order given into one shard until the next would not fit; a tensor
 * larger than a shard gets one of its own. Those of a module behind the body go into its folder. Inside a file they stand in the order of the Rust writer, or in that given.
 *
 * @param tensors in natural order, or in that of the files
 * @param metadata for `__metadata__` of every shard
 * @param shardBytes most bytes of tensor data in one file
 * @throws AmalgamError `UnsafeName`, `DuplicateKey`, `LimitExceeded` from the header
 */
export function planShards(
  tensors: readonly Pick<TensorPlan, 'name' | 'dtype' | 'shape'>[],
  metadata: Readonly<Record<string, string>>,
  shardBytes: number,
  keepsOrder = false,
): ShardPlan[] {
  const groups: { folder: string; tensors: ShardPlan['tensors'] }[] = [];
  let room = 0;
  for (const { name, dtype, shape } of tensors) {
    const byteLength = tensorBytes(dtype, shape)!;
    const folder = moduleFolder(name) ?? '';
    const group = groups.at(-1);
    if (group?.folder === folder && (folder !== '' || byteLength <= room))
      group.tensors.push({ name, dtype, shape, byteLength });
    else {
      groups.push({ folder, tensors: [{ name, dtype, shape, byteLength }] });
      room = shardBytes;
    }
    room -= byteLength;
  }
  const ofBody = groups.filter(({ folder }) => folder === '').length;
  return groups.map(({ folder, tensors: group }, index) => {
    const sorted = keepsOrder ? group : sortForFile(group);
    const file = folder === '' ? shardName(index, ofBody) : `${folder}model.safetensors`;
    return shardOf(file, sorted, metadata, nameInFile);
  });
}

/** @param keyOf the name of a tensor in the file */
function shardOf(
  file: string,
  tensors: ShardPlan['tensors'],
  metadata: Readonly<Record<string, string>>,
  keyOf = (name: string) => name,
): ShardPlan {
  const header = buildSafetensorsHeader(
    tensors.map((tensor) => ({ ...tensor, name: keyOf(tensor.name) })),
    metadata,
  );
  const byteLength = tensors.reduce((sum, tensor) => sum + tensor.byteLength, header.byteLength);
  return { file, tensors, header, byteLength };
}

/** One shard a file of the base. */
function shardsAsStored(
  tensors: Plan['tensors'],
  places: NonNullable<Plan['places']>,
  metadata: Readonly<Record<string, string>>,
): ShardPlan[] {
  const files = new Map<string, ShardPlan['tensors']>();
  for (const { name, dtype, shape } of tensors) {
    const { file } = places.get(name)!;
    const own = files.get(file) ?? [];
    own.push({ name, dtype, shape, byteLength: tensorBytes(dtype, shape)! });
    files.set(file, own);
  }
  return [...files].map(([file, own]) =>
    shardOf(file, sortForFile(own), metadata, (name) => places.get(name)!.key),
  );
}

/** `model.safetensors` alone, `model-00002-of-00007.safetensors` among several, as transformers names them. */
function shardName(index: number, count: number): string {
  if (count === 1) return 'model.safetensors';
  const digits = (n: number) => String(n).padStart(5, '0');
  return `model-${digits(index + 1)}-of-${digits(count)}.safetensors`;
}

/** What PEFT calls the weights of an adapter. */

/**
 * The shards of a plan with everything known in their metadata: recipe, version and the sha256 of the inputs; none
 * where only GGUF is written. Beside a GGUF file that stacks experts they stand in its order, as it takes them when they come.
 *
 * @param hashes {@link inputName} → lower-case hex sha256, of the inputs whose hash is known
 */
export function finishShards(
  plan: Pick<Plan, 'recipe' | 'madeBy' | 'tensors' | 'inputs' | 'gguf' | 'adapterFile' | 'places'>,
  hashes: ReadonlyMap<string, string>,
): ShardPlan[] {
  // what is written beside them changes no byte of the shards
  const { gguf: _, imatrix: __, ggufOnly, ...amalgam } = plan.recipe.amalgam;
  if (ggufOnly) return [];
  const known = knownHashes(plan.inputs, hashes);
  const { key, text } = originText({ ...plan, recipe: { ...plan.recipe, amalgam } });
  const metadata = {
    format: 'pt',
    [`amalgam_${key}`]: text,
    amalgam_version: AMALGAM_VERSION,
    ...(known === undefined ? {} : { amalgam_inputs: known }),
  };
  if (amalgam.output === 'adapter') {
    return planShards(plan.tensors, metadata, Number.POSITIVE_INFINITY).map((shard) => ({
      ...shard,
      file: plan.adapterFile ?? ADAPTER_WEIGHTS,
    }));
  }
  const { tensors, gguf: beside, places } = plan;
  if (places) return shardsAsStored(tensors, places, metadata);
  const shardBytes = amalgam.shardBytes ?? DEFAULT_SHARD_BYTES;
  if (!beside?.isStacked) return planShards(tensors, metadata, shardBytes);
  const place = new Map([...beside.tensors.keys()].map((name, at) => [name, at]));
  const last = place.size;
  const ordered = [...tensors].sort((a, b) => (place.get(a.name) ?? last) - (place.get(b.name) ?? last));
  return planShards(ordered, metadata, shardBytes, true);
}

/** {@link inputName} → sha256 of the inputs whose hash is known, as JSON; undefined where none is. */
export function knownHashes(inputs: Plan['inputs'], hashes: ReadonlyMap<string, string>): string | undefined {
  const known = inputs
    .map(({ folder, file }) => inputName(folder, file))
    .flatMap((name) => (hashes.has(name) ? [[name, hashes.get(name)!] as const] : []));
  return known.length > 0 ? JSON.stringify(Object.fromEntries(known)) : undefined;
}
