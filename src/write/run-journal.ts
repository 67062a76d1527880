/**
 * The journal of a run, from which an interrupted one goes on. It is only ever appended to. A line is the first 16 hex
 * digits of the sha256 of its JSON, a space, the JSON and a newline, so that a line torn or altered by a crash, and all
 * that follows it, counts as not written.
 */
import { hex, isTreeHash } from '../formats/hashes';
import type { BackendKind } from '../reports/backend';
import type { TensorReport } from '../reports/job';
import type { ByteSource } from '../sources/byte-source';
import { beginSha256, type Sha256 } from '../sources/sha256';
import { giveBack } from '../sources/spare-arrays';
import { beginLeaves, type LeafHasher, treeHash } from '../sources/tree-hash';
import type { Destination, WrittenShard } from './destination';
import type { FilePlan } from './shard-plan';

export type JournalEntry =
  /** The first line: recipe, inputs and engine of the merge. Bytes may differ in the last bit between engines. */
  | {
      kind: 'begun';
      version: JournalVersion;
      recipe: string;
      engine: BackendKind;
      adapter: string;
      startedAt: string;
    }
  /** The inputs are there: the sha256 of all shard headers, tensors and bytes of tensor data in all. */
  | { kind: 'planned'; headersSha256: string; tensors: number; bytes: number }
  /** A run that goes on from the first `checkpoints` safe points; later ones are void. */
  | { kind: 'resumed'; checkpoints: number }
  | SafePoint;

/** The first `bytes` bytes of a shard are on the disk; they end at a tensor boundary. On the disk it is called a checkpoint. */
export interface SafePoint {
  kind: 'checkpoint';
  file: string;
  bytes: number;
  /** Tree hash of these bytes; a plain sha256 in a journal of version 1. */
  hash: string;
  /** The shard is whole and closed. */
  whole: boolean;
  /** How far the GGUF file beside the shards is on the disk at the same tensor; absent where there is none. */
  beside?: { bytes: number; hash: string };
  /** Reports of the tensors since the safe point before. */
  tensors: TensorReport[];
  /** Pieces read since the safe point before, of inputs whose hash was not known. */
  read?: ReadPieces;
}

/** By the input's name: number and sha256 (hex) of the pieces of its tree hash. */
export type ReadPieces = Record<string, (readonly [piece: number, sha256: string])[]>;

/** 1: hashes are plain sha256, and those of all inputs stand in the headers. 2: tree hashes. */
type JournalVersion = 1 | 2;

export interface RunJournal {
  begun: Extract<JournalEntry, { kind: 'begun' }>;
  planned?: Extract<JournalEntry, { kind: 'planned' }>;
  safePoints: SafePoint[];
  /** Bytes of the lines that are sound. */
  byteLength: number;
}

const DIGITS = 16;
const NEWLINE = 10;

/** One line, to be appended. */
export async function journalLine(entry: JournalEntry): Promise<Uint8Array<ArrayBuffer>> {
  const json = JSON.stringify(entry);
  return new TextEncoder().encode(`${await check(new TextEncoder().encode(json))} ${json}\n`);
}

/**
 * Reads the sound beginning of a journal.
 * @returns undefined when not even its first line is, or it is of another version.
 */
export async function readJournal(bytes: Uint8Array<ArrayBuffer>): Promise<RunJournal | undefined> {
  let journal: RunJournal | undefined;
  for (let begin = 0; begin < bytes.length; ) {
    const end = bytes.indexOf(NEWLINE, begin);
    const entry = end < 0 ? undefined : await readLine(bytes.slice(begin, end));
    if (!entry) break;
    if (entry.kind === 'begun') {
      if (journal || (entry.version !== 1 && entry.version !== 2)) break;
      journal = { begun: entry, safePoints: [], byteLength: 0 };
    } else if (!journal) break;
    else if (entry.kind === 'planned') journal.planned = entry;
    else if (entry.kind === 'resumed') journal.safePoints.length = entry.checkpoints;
    else journal.safePoints.push(safePointOf(entry));
    begin = end + 1;
    journal.byteLength = begin;
  }
  return journal;
}

/** A safe point of version 1 has its hashes under another name. */
function safePointOf(entry: SafePoint): SafePoint {
  const { sha256, ...rest } = entry as SafePoint & { sha256?: string };
  if (sha256 === undefined) return entry;
  const { beside } = entry as { beside?: { bytes: number; sha256?: string } };
  return { ...rest, hash: sha256, ...(beside && { beside: { bytes: beside.bytes, hash: beside.sha256! } }) };
}

async function readLine(line: Uint8Array<ArrayBuffer>): Promise<JournalEntry | undefined> {
  const json = line.slice(DIGITS + 1);
  const sum = new TextDecoder('latin1').decode(line.subarray(0, DIGITS + 1));
  if (sum !== `${await check(json)} `) return undefined;
  return JSON.parse(new TextDecoder().decode(json)) as JournalEntry;
}

async function check(json: Uint8Array<ArrayBuffer>): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', json));
  return hex(digest.subarray(0, DIGITS / 2));
}

// Where an interrupted run goes on: everything its journal claims is read again and hashed before it is believed.

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
  // what a version of before has noted
  const plain = safePoints.some(({ hash }) => !isTreeHash(hash)) ? await beginSha256() : undefined;
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
      plain?.update(bytes);
      await further.update(bytes);
      giveBack(bytes.buffer);
      onBytes(end - at);
      at = end;
    }
    if ((await hashSoFar(safePoint, further, plain)) !== safePoint.hash) return { safePoints: index, hasher };
    hasher = further;
    tensors += safePoint.tensors.length;
  }
  return { safePoints: safePoints.length, hasher };
}

async function hashSoFar(
  { hash }: SafePoint,
  hasher: LeafHasher,
  plain: Sha256 | undefined,
): Promise<string> {
  return plain && !isTreeHash(hash) ? (await plain.copy()).digest() : treeHash(await hasher.leaves());
}
