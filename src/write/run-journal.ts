/**
 * The journal of a run, from which an interrupted one goes on. It is only ever appended to. A line is the first 16 hex
 * digits of the sha256 of its JSON, a space, the JSON and a newline, so that a line torn or altered by a crash, and all
 * that follows it, counts as not written.
 */
import { hex } from '../formats/hashes';
import type { BackendKind } from '../reports/backend';
import type { TensorReport } from '../reports/job';

export type JournalEntry =
  /** The first line: recipe, inputs and engine of the merge. Bytes may differ in the last bit between engines. */
  | {
      kind: 'begun';
      version: 3;
      recipe: string;
      engine: BackendKind;
      adapter: string;
      startedAt: string;
      /** Its inputs pass by. */
      stream?: true;
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
  /** Tree hash of these bytes. */
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

/** By the input's name: number and digest (hex) of the pieces of its tree hash. */
export type ReadPieces = Record<string, (readonly [piece: number, sha256: string])[]>;

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
  const json = new TextEncoder().encode(JSON.stringify(entry));
  const line = new Uint8Array(DIGITS + 1 + json.length + 1);
  line.set(new TextEncoder().encode(`${await check(json)} `));
  line.set(json, DIGITS + 1);
  line[line.length - 1] = NEWLINE;
  return line;
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
      if (journal || entry.version !== 3) break;
      journal = { begun: entry, safePoints: [], byteLength: 0 };
    } else if (!journal) break;
    else if (entry.kind === 'planned') journal.planned = entry;
    else if (entry.kind === 'resumed') journal.safePoints.length = entry.checkpoints;
    else journal.safePoints.push(entry);
    begin = end + 1;
    journal.byteLength = begin;
  }
  return journal;
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
