/** Rows of the benchmark's table: what was measured, the best of several rounds, and how it is printed. */
import type { WorkSeconds } from '../../src/reports/job';

/**
 * Where a merge takes its models from and puts what comes out: the browser's storage, folders that a user picked in the
 * browser, or folders named to the command.
 */
export type Way = 'storage' | 'folder' | 'command';

export const WAYS: Readonly<Record<Way, string>> = {
  storage: 'studio, from its storage',
  folder: 'studio, picked folder',
  command: 'command, local folders',
};

/** Lower bound in seconds that no order of work shortens. */
export interface Bound {
  what: string;
  seconds: number;
}

export interface Row {
  /** Of the case. */
  name: string;
  way: Way;
  /** With what computed. */
  engine: string;
  /** Of the command from its start to its exit, of the studio from the click to the finished files. */
  seconds: number;
  /** Least time for the bytes, or the products of matrices. */
  floor: Bound;
  /** Bounds besides the floor and the processors. */
  bounds: readonly Bound[];
  /** Absent where the job does not report them. */
  stages?: WorkSeconds;
  /** Read and written. */
  bytes: number;
  /** Processor time in seconds, of all processes. */
  user: number;
  system: number;
  /** Bytes: of the studio at its peak above idle, of the command its largest resident set. */
  memory: number;
  /** Hashes of the weights that were written, one after another. */
  output: string;
}

const STAGES = ['read', 'upload', 'compute', 'readback', 'write'] as const;

/** The beginning of the table. */
export const HEADER = [
  `| case | way | engine | floor s | merge s | ratio | × mergekit | MB/s | ${STAGES.join(' | ')} | stages / wall | user s | system s | MiB | bound |`,
  `|${' --- |'.repeat(3)}${' ---: |'.repeat(13)} --- |`,
].join('\n');

/** The round that took the least, with the lowest floor and the most memory of all. @param rows at least one */
export function bestOf(rows: readonly Row[]): Row {
  const least = <T>(of: readonly T[], size: (item: T) => number) =>
    of.reduce((a, b) => (size(b) < size(a) ? b : a));
  return {
    ...least(rows, (row) => row.seconds),
    floor: least(
      rows.map((row) => row.floor),
      (floor) => floor.seconds,
    ),
    memory: Math.max(...rows.map((row) => row.memory)),
  };
}

/**
 * One line of the table.
 * @param mergekit seconds that mergekit took for the same files, if it did
 * @param cores that share the processor time at best
 */
export function formatRow(row: Row, mergekit: number | undefined, cores: number): string {
  const { seconds, floor, stages } = row;
  const sum = stages && STAGES.reduce((all, stage) => all + stages[stage], 0);
  const cells = [
    row.name,
    WAYS[row.way],
    row.engine,
    `${text(floor.seconds)}${floor.what === 'bytes' ? '' : ` (${floor.what})`}`,
    text(seconds),
    (seconds / floor.seconds).toFixed(2),
    mergekit === undefined ? '' : `${(mergekit / seconds).toFixed(2)} (${text(mergekit)} s)`,
    (row.bytes / seconds / 1e6).toFixed(0),
    ...STAGES.map((stage) => (stages ? text(stages[stage]) : '')),
    sum === undefined ? '' : `${((100 * sum) / seconds).toFixed(0)} %`,
    text(row.user),
    text(row.system),
    (row.memory / 2 ** 20).toFixed(0),
    boundOf(row, cores),
  ];
  return `| ${cells.join(' | ')} |`;
}

/** The longest of the bounds, and its part of the time that passed. */
function boundOf({ floor, bounds, user, system, seconds }: Row, cores: number): string {
  const processor = { what: `processor time on ${cores} cores`, seconds: (user + system) / cores };
  const longest = [floor, ...bounds, processor].reduce((a, b) => (b.seconds > a.seconds ? b : a));
  return `${longest.what}: ${text(longest.seconds)} s, ${((100 * longest.seconds) / seconds).toFixed(0)} %`;
}

/** Seconds with three digits below one, else with two. */
const text = (seconds: number): string => seconds.toFixed(seconds < 0.995 ? 3 : 2);
