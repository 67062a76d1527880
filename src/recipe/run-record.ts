/** The journal of one merge: written as it goes, read when an interrupted one is resumed. */

import { AmalgamError } from '../errors';
import { hex } from '../formats/hashes';
import { displayName } from '../formats/names';
import { originText, type Plan } from '../merge/plan/plan';
import type { ShardSink } from '../merge/run/run';
import type { BackendKind } from '../reports/backend';
import type { TensorReport } from '../reports/job';
import { beginSha256 } from '../sources/sha256';
import type { Leaf } from '../sources/tree-hash';
import type { Destination, WrittenShard } from '../write/destination';
import { findResumePoint, type PartialShard, type ResumePoint } from '../write/resume-point';
import {
  type JournalEntry,
  journalLine,
  type ReadPieces,
  type RunJournal,
  readJournal,
  type SafePoint,
} from '../write/run-journal';
import type { FilePlan } from '../write/shard-plan';
import { ShardWriter } from '../write/shard-writer';

/** A shard in the making is made durable at most this often: a kill loses that much work and two units, no more. */
const SAFE_POINT_MS = 500;

/** Bytes and tensors being written, to be noted in the journal once they are on the disk. */
interface Unnoted {
  bytes: number;
  tensors: TensorReport[];
  durable?: Pick<SafePoint, 'hash' | 'beside'>;
  failure?: unknown;
}

export interface RunRecord {
  /** Journal of an interrupted run; undefined for a new one. */
  readonly found: RunJournal | undefined;
  /** Notes what is merged and on what. @throws RunChanged when the interrupted run was of something else */
  begin(plan: Plan, engine: { kind: BackendKind; adapter: string }, stream?: boolean): Promise<void>;
  /**
   * Notes the output that is written from here on, and finds what an interrupted run has done of it.
   * @param readPieces what is known of inputs whose hash was not known before, all of it where a run goes on
   * @throws RunChanged when its headers, or what it read of an input, were others
   */
  point(
    shards: readonly FilePlan[],
    beside: FilePlan | undefined,
    readPieces: () => Promise<HashedPieces>,
    signal: AbortSignal,
    onBytes: OnBytes,
  ): Promise<ResumePoint>;
  openShard(shard: FilePlan, skipped: number): Promise<ShardSink<WrittenShard>>;
  /** The GGUF file beside the shards: it is at the same tensor whenever one is finished. Opened once. */
  openBeside(): Promise<Pick<ShardWriter, 'place' | 'write' | 'finish'>>;
}

/** By the input's name: the leaves of its tree hash that were begun so far. */
export type HashedPieces = ReadonlyMap<string, ReadonlyMap<number, Promise<Leaf>>>;

type OnBytes = (bytes: number, file: string) => void;

/**
 * Opens the record of a run at its destination. Where nothing can be stored it records nothing.
 * @param resume reads what an interrupted run left; else the destination has been opened anew
 * @param safePointMs tests vary it
 */
export async function openRunRecord(
  destination: Destination,
  resume: boolean,
  safePointMs = SAFE_POINT_MS,
): Promise<RunRecord> {
  const { remains } = destination;
  const found = resume && remains ? await readJournal(await remains.readJournal()) : undefined;
  let length = found?.byteLength ?? 0;
  let point: ResumePoint = { shards: [], tensors: [], safePoints: 0 };
  let besidePlan: FilePlan | undefined;
  let besideWriter: ShardWriter | undefined;

  let readPieces = async (): Promise<HashedPieces> => new Map();
  const noted = new Map<string, Set<number>>();
  /** Pieces that were read and are not in the journal yet. */
  const freshPieces = async (): Promise<{ read?: ReadPieces }> => {
    const read: ReadPieces = {};
    for (const [name, leaves] of await readPieces()) {
      const old = noted.get(name) ?? new Set();
      noted.set(name, old);
      const fresh = [...leaves].filter(([piece]) => !old.has(piece));
      if (fresh.length > 0) {
        read[name] = await Promise.all(fresh.map(async ([piece, leaf]) => [piece, hex(await leaf)] as const));
      }
      for (const [piece] of fresh) old.add(piece);
    }
    return Object.keys(read).length > 0 ? { read } : {};
  };

  const note = async (entry: JournalEntry): Promise<void> => {
    if (!remains) return;
    const line = await journalLine(entry);
    await remains.appendJournal(length, line);
    length += line.byteLength;
  };

  /** Shards that are being closed, in order: the journal knows a shard only behind those before it. */
  let closing: Promise<unknown> = Promise.resolve();
  let unclosed = 0;
  /** The GGUF file takes nothing more while it is asked how far it is. */
  let besideAsked: Promise<unknown> = Promise.resolve();

  const open = async (file: FilePlan, partial: PartialShard | undefined): Promise<ShardWriter> =>
    partial
      ? ShardWriter.resume(file, await remains!.reopen!(file.file, partial.bytes), partial)
      : ShardWriter.open(destination, file);

  return {
    found,
    async begin(plan, { kind: engine, adapter }, stream = false) {
      const recipe = originText(plan).text;
      if (found) {
        if (found.begun.recipe !== recipe) throw changed('its recipe was another one');
        const { engine: kind, adapter: name } = found.begun;
        if (kind !== engine || name !== adapter)
          throw changed(`it was begun on ${name}, and this is ${adapter}`);
        return;
      }
      const startedAt = new Date().toISOString();
      const inputs = stream ? { stream: true as const } : {};
      await note({ kind: 'begun', version: 3, recipe, engine, adapter, startedAt, ...inputs });
    },
    async point(shards, beside, pieces, signal, onBytes) {
      besidePlan = beside;
      readPieces = pieces;
      const headersSha256 = await hashHeaders(beside ? [...shards, beside] : shards);
      if (found?.planned && found.planned.headersSha256 !== headersSha256) {
        throw changed('its inputs, or the version of Amalgam, were others');
      }
      if (found?.planned) {
        await requireSame(found.safePoints, await pieces());
        point = await findResumePoint(found, shards, beside, destination, signal, onBytes);
        await note({ kind: 'resumed', checkpoints: point.safePoints });
        return point;
      }
      const tensors = shards.reduce((sum, s) => sum + s.tensors.length, 0);
      const bytes = shards.reduce((sum, s) => sum + s.byteLength - s.header.byteLength, 0);
      await note({ kind: 'planned', headersSha256, tensors, bytes });
      return point;
    },
    async openBeside() {
      besideWriter ??= await open(besidePlan!, point.beside);
      return besideWriter;
    },
    async openShard(shard, skipped) {
      const writer = await open(shard, skipped > 0 ? point.partial : undefined);
      const canContinue = remains?.reopen !== undefined;
      let waiting: TensorReport[] = [];
      let unnoted: Unnoted | undefined;
      let begunAt = performance.now();
      const safePoint = async () => {
        const { bytes, durable } = await writer.safePoint();
        const beside = await besideWriter?.safePoint();
        const begun: Unnoted = { bytes, tensors: waiting };
        waiting = [];
        unnoted = begun;
        Promise.all([durable, beside?.durable]).then(
          ([hash, besideHash]) => {
            begun.durable = {
              hash,
              ...(beside && { beside: { bytes: beside.bytes, hash: besideHash! } }),
            };
          },
          (thrown: unknown) => {
            begun.failure = thrown;
          },
        );
        begunAt = performance.now();
      };
      return {
        place: writer.place,
        write: (bytes, at) => writer.write(bytes, at),
        async finishTensors(reports, [part, second]) {
          await writer.take(part!, reports.length);
          await besideAsked;
          if (second) await besideWriter!.take(second, reports.length);
          waiting.push(...reports);
          if (unnoted && 'failure' in unnoted) throw unnoted.failure;
          if (unclosed > 0) return;
          if (unnoted?.durable) {
            const { bytes, tensors, durable } = unnoted;
            unnoted = undefined;
            const read = await freshPieces();
            await note({
              kind: 'checkpoint',
              file: shard.file,
              bytes,
              whole: false,
              tensors,
              ...durable,
              ...read,
            });
          }
          if (canContinue && !unnoted && performance.now() - begunAt >= safePointMs) await safePoint();
        },
        finish() {
          const tensors = [...(unnoted?.tensors ?? []), ...waiting];
          const before = closing;
          const asked = canContinue ? besideWriter?.safePoint() : undefined;
          besideAsked = Promise.allSettled([asked]);
          const finished = (async () => {
            const at = await asked;
            const written = await writer.finish();
            const beside = at && { bytes: at.bytes, hash: await at.durable };
            await before;
            const read = await freshPieces();
            const whole = { ...written, whole: true, ...(beside && { beside }), tensors, ...read };
            await note({ kind: 'checkpoint', ...whole });
            unclosed--;
            return written;
          })();
          unclosed++;
          closing = finished;
          return finished;
        },
        abort() {
          writer.abort();
          besideWriter?.abort();
        },
      };
    },
  };
}

/** @throws RunChanged when an input is another one than that which the interrupted run has read */
async function requireSame(safePoints: readonly SafePoint[], pieces: HashedPieces): Promise<void> {
  for (const { read = {} } of safePoints) {
    for (const [name, leaves] of Object.entries(read)) {
      for (const [piece, sha256] of leaves) {
        const leaf = await pieces.get(name)?.get(piece);
        if (leaf && hex(leaf) === sha256) continue;
        throw changed(`${displayName(name)} has other bytes now`);
      }
    }
  }
}

/** sha256 over all headers in order: names, dtypes and shapes of the tensors, recipe, version, hashes of the inputs. */
async function hashHeaders(shards: readonly FilePlan[]): Promise<string> {
  const hash = await beginSha256();
  for (const { file, header } of shards) {
    hash.update(new TextEncoder().encode(`${file}\n`));
    hash.update(header);
  }
  return hash.digest();
}

function changed(what: string): AmalgamError {
  return new AmalgamError(
    'RunChanged',
    `The interrupted merge cannot be resumed: ${what}.`,
    'Discard it and merge again; downloads are kept.',
  );
}
