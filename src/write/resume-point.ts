/** Where an interrupted run goes on: everything its journal claims is read again and hashed before it is believed. */
import type { TensorReport } from '../reports/job';
import type { ByteSource } from '../sources/byte-source';
import { giveBack } from '../sources/spare-arrays';
import { beginLeaves, type LeafHasher, treeHash } from '../sources/tree-hash';
import type { Destination, WrittenShard } from './destination';
import type { RunJournal, SafePoint } from './run-journal';
import type { FilePlan } from './shard-plan';

export interface ResumePoint {
  /** Shards that are whole, from the first on. */
  shards: WrittenShard[];
  /** Reports of every tensor that is on the disk, from the first on. */
  tensors: TensorReport[];
  /** How many of the journal's safe points hold. */
  safePoints: number;
  /** The shard after them, as far as it holds. */
  partial?: PartialShard;
  /** The GGUF file beside them, as far as the same tensors. */
  beside?: PartialShard;
}

/** The beginning of a shard: header and whole tensors. */
export interface PartialShard {
  bytes: number;
  tensors: number;
  /** Has taken these bytes. */
  hasher: LeafHasher;
}

/** Bytes read at once while hashing. */
const PIECE = 8 * 1024 * 1024;

/**
 * Follows the journal's safe points through the files that are left, shard by shard, up to the first that does not
 * hold: its file shorter than it says, its hash another, its tensors not those of the plan. A shard that is not whole
 * counts only where files can be continued.
 *
 * @param shards the plan of the same output; the caller has compared the headers
 * @param beside the GGUF file that gets the same tensors; with it only safe points of both count
 * @param onBytes called with the bytes hashed since the last call
 * @throws what reading the files throws, and Canceled
 */
export async function findResumePoint(
  journal: RunJournal,
  shards: readonly FilePlan[],
  beside: FilePlan | undefined,
  destination: Destination,
  signal?: AbortSignal,
  onBytes?: (bytes: number, file: string) => void,
): Promise<ResumePoint> {
  if (!beside) return shardsPoint(journal.safePoints, shards, destination, signal, onBytes);
  const none: ResumePoint = { shards: [], tensors: [], safePoints: 0 };
  const source = destination.remains?.reopen && (await destination.left?.(beside.file));
  if (!source) return none;
  const claimed = journal.safePoints.map((c) => ({ ...c, ...c.beside, whole: false }));
  const held = await verifyShard(beside, claimed, source, signal, (bytes) => onBytes?.(bytes, beside.file));
  const both = journal.safePoints.slice(0, held.safePoints);
  const point = await shardsPoint(both, shards, destination, signal, onBytes);
  if (point.safePoints === 0) return none;
  const { hasher } =
    point.safePoints === held.safePoints
      ? held
      : await verifyShard(beside, claimed.slice(0, point.safePoints), source, signal, () => {});
  return {
    ...point,
    beside: { bytes: claimed[point.safePoints - 1]!.bytes, tensors: point.tensors.length, hasher },
  };
}

async function shardsPoint(
  safePoints: readonly SafePoint[],
  shards: readonly FilePlan[],
  { left, remains }: Destination,
  signal?: AbortSignal,
  onBytes?: (bytes: number, file: string) => void,
): Promise<ResumePoint> {
  const point: ResumePoint = { shards: [], tensors: [], safePoints: 0 };
  for (const shard of shards) {
    const claimed = safePoints.slice(point.safePoints);
    const last = claimed.findIndex(({ file }) => file !== shard.file);
    const own = last < 0 ? claimed : claimed.slice(0, last);
    const source = own.length > 0 ? await left?.(shard.file) : undefined;
    if (!source || !remains) return point;
    const found = await verifyShard(shard, own, source, signal, (bytes) => onBytes?.(bytes, shard.file));
    const holds = own.slice(0, found.safePoints);
    const end = holds.at(-1);
    if (!end || (!end.whole && !remains.reopen)) return point;
    point.safePoints += holds.length;
    for (const { tensors } of holds) point.tensors.push(...tensors);
    if (!end.whole) {
      const tensors = holds.reduce((sum, safePoint) => sum + safePoint.tensors.length, 0);
      point.partial = { bytes: end.bytes, tensors, hasher: found.hasher };
      return point;
    }
    const hash = await treeHash(await found.hasher.leaves());
    await remains.adopt(shard.file, end.bytes, hash);
    point.shards.push({ file: shard.file, bytes: end.bytes, hash });
  }
  return point;
}

/** How many of a shard's safe points hold, and the leaves of the bytes up to the last of them. */
async function verifyShard(
  shard: FilePlan,
  safePoints: readonly SafePoint[],
  source: ByteSource,
  signal: AbortSignal | undefined,
  onBytes: (bytes: number) => void,
): Promise<{ safePoints: number; hasher: LeafHasher }> {
  let hasher = beginLeaves();
  let at = 0;
  let tensors = 0;
  let planned = shard.header.byteLength;
  for (const [index, safePoint] of safePoints.entries()) {
    const next = shard.tensors.slice(tensors, tensors + safePoint.tensors.length);
    planned = next.reduce((sum, { byteLength }) => sum + byteLength, planned);
    const isPlanned =
      next.every(({ name }, i) => name === safePoint.tensors[i]!.name) &&
      safePoint.bytes === planned &&
      (!safePoint.whole || planned === shard.byteLength);
    if (!isPlanned || safePoint.bytes > source.byteLength) return { safePoints: index, hasher };
    const further = hasher.copy();
    while (at < safePoint.bytes) {
      const end = Math.min(at + PIECE, safePoint.bytes);
      const bytes = await source.read(at, end, signal);
      await further.update(bytes);
      giveBack(bytes.buffer);
      onBytes(end - at);
      at = end;
    }
    const hash = await treeHash(await further.leaves());
    if (hash !== safePoint.hash) return { safePoints: index, hasher };
    hasher = further;
    tensors += safePoint.tensors.length;
  }
  return { safePoints: safePoints.length, hasher };
}
