/** The journal of one merge: written as it goes, read when an interrupted one is resumed. */

import { AmalgamError } from '../errors';
import { formatRecipe } from '../formats/recipe-format';
import type { Plan } from '../merge/plan/plan';
import type { ShardSink } from '../merge/run/run';
import type { BackendKind } from '../reports/backend';
import type { TensorReport } from '../reports/job';
import { beginSha256 } from '../sources/sha256';
import type { Destination, WrittenShard } from '../write/destination';
import { findResumePoint, type PartialShard, type ResumePoint } from '../write/resume-point';
import { type JournalEntry, journalLine, type RunJournal, readJournal } from '../write/run-journal';
import type { FilePlan } from '../write/shard-plan';
import { ShardWriter } from '../write/shard-writer';

/** A shard in the making is made durable at most this often: a kill loses that much work and two tensors, no more. */
const CHECKPOINT_MS = 500;

/** What is on the disk already and waits for its sha256 to be noted. */
interface Unnoted {
  bytes: number;
  sha256?: string;
  beside?: { bytes: number; sha256: string };
  tensors: TensorReport[];
}

export interface RunRecord {
  /** What the journal of an interrupted run says; undefined for a new one. */
  readonly found: RunJournal | undefined;
  /** Notes what is merged and on what. @throws RunChanged when the interrupted run was of something else */
  begin(plan: Plan, engine: { kind: BackendKind; adapter: string }): Promise<void>;
  /**
   * Notes the output that is written from here on, and finds what an interrupted run has done of it.
   * @throws RunChanged when its headers were others: an input has changed
   */
  point(
    shards: readonly FilePlan[],
    beside: FilePlan | undefined,
    signal: AbortSignal,
    onBytes: OnBytes,
  ): Promise<ResumePoint>;
  openShard(shard: FilePlan, skipped: number): Promise<ShardSink<WrittenShard>>;
  /** The GGUF file beside the shards: it is at the same tensor whenever one is finished. Opened once. */
  openBeside(): Promise<Pick<ShardWriter, 'append' | 'finish'>>;
}

type OnBytes = (bytes: number, file: string) => void;

/**
 * Opens the record of a run at its destination. Where nothing can be kept it records nothing.
 * @param resume reads what an interrupted run left; else the destination has been opened anew
 * @param checkpointMs tests vary it
 */
export async function openRunRecord(
  destination: Destination,
  resume: boolean,
  checkpointMs = CHECKPOINT_MS,
): Promise<RunRecord> {
  const { remains } = destination;
  const found = resume && remains ? await readJournal(await remains.readJournal()) : undefined;
  let length = found?.byteLength ?? 0;
  let point: ResumePoint = { shards: [], tensors: [], checkpoints: 0 };
  let besidePlan: FilePlan | undefined;
  let besideWriter: ShardWriter | undefined;

  const note = async (entry: JournalEntry): Promise<void> => {
    if (!remains) return;
    const line = await journalLine(entry);
    await remains.appendJournal(length, line);
    length += line.byteLength;
  };

  const open = async (file: FilePlan, partial: PartialShard | undefined): Promise<ShardWriter> =>
    partial
      ? ShardWriter.resume(file, await remains!.reopen!(file.file, partial.bytes, file.byteLength), partial)
      : ShardWriter.open(destination, file);

  return {
    found,
    async begin(plan, { kind: engine, adapter }) {
      const recipe = formatRecipe(plan.recipe);
      if (found) {
        if (found.begun.recipe !== recipe) throw changed('its recipe was another one');
        const { engine: kind, adapter: name } = found.begun;
        if (kind !== engine || name !== adapter)
          throw changed(`it was begun on ${name}, and this is ${adapter}`);
        return;
      }
      const startedAt = new Date().toISOString();
      await note({ kind: 'begun', version: 1, recipe, engine, adapter, startedAt });
    },
    async point(shards, beside, signal, onBytes) {
      besidePlan = beside;
      const headersSha256 = await hashHeaders(beside ? [...shards, beside] : shards);
      if (found?.planned && found.planned.headersSha256 !== headersSha256) {
        throw changed('its inputs, or the version of Amalgam, were others');
      }
      if (found?.planned) {
        point = await findResumePoint(found, shards, beside, destination, signal, onBytes);
        await note({ kind: 'resumed', checkpoints: point.checkpoints });
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
      const checkpoint = async () => {
        const { bytes, sha256 } = await writer.checkpoint();
        const beside = await besideWriter?.checkpoint();
        const begun: Unnoted = { bytes, tensors: waiting };
        waiting = [];
        unnoted = begun;
        // a hash that fails fails the next append too
        Promise.all([sha256, beside?.sha256]).then(
          ([hex, besideHex]) => {
            if (beside) begun.beside = { bytes: beside.bytes, sha256: besideHex! };
            begun.sha256 = hex;
          },
          () => undefined,
        );
        begunAt = performance.now();
      };
      return {
        append: (bytes) => writer.append(bytes),
        async finishTensor(report) {
          waiting.push(report);
          if (unnoted?.sha256 !== undefined) {
            const { bytes, sha256, tensors, beside } = unnoted;
            unnoted = undefined;
            const { file } = shard;
            await note({
              kind: 'checkpoint',
              file,
              bytes,
              sha256,
              whole: false,
              ...withBeside(beside),
              tensors,
            });
          }
          if (canContinue && !unnoted && performance.now() - begunAt >= checkpointMs) await checkpoint();
        },
        async finish() {
          const written = await writer.finish();
          const tensors = [...(unnoted?.tensors ?? []), ...waiting];
          const at = canContinue ? await besideWriter?.checkpoint() : undefined;
          const beside = at && { bytes: at.bytes, sha256: await at.sha256 };
          await note({ kind: 'checkpoint', ...written, whole: true, ...withBeside(beside), tensors });
          return written;
        },
        abort() {
          writer.abort();
          besideWriter?.abort();
        },
      };
    },
  };
}

function withBeside<T>(beside: T | undefined): { beside?: T } {
  return beside === undefined ? {} : { beside };
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
