/** Datasets on the Hub as texts to measure on. */

import { AmalgamError, errorReport } from '../errors';
import type { Row, RowValue } from '../foreign/parquet';
import { displayName } from '../formats/names';
import type { DatasetColumns, DatasetInfo, DatasetRequest, DatasetText } from '../reports/dataset';
import type { RunningProgress } from '../reports/evaluate';
import { secondsLeft } from '../reports/time-left';
import { type HubDataset, openHubDataset } from '../sources/hub';
import type { Hub } from '../sources/hub-request';
import type { ModelFile, ModelFolder } from '../sources/model-folder';
import type { OpenSource } from '../store/blobs';
import { openCached, openForHeader } from '../store/cached-source';
import { readText, textColumns, withParquet } from './file-text';
import { parseRows } from './json-lines';
import { textKind } from './text-kind';
import { decodeText, openStream } from './text-stream';

// Files of a dataset repo that hold a split, by the names customary on the Hub.

/** Path of the Hub's parquet copy of most datasets: `<subset>/<split>/0000.parquet`. */
export const CONVERTED_BRANCH = 'refs/convert/parquet';

/** Subsets that stand for a dataset without any. */
const ONLY_SUBSETS = ['default', 'plain_text'];

interface SplitFile {
  path: string;
  subset: string | null;
  split: string;
}

/**
 * The files of a split in order: `[subset/][data/]split[-00000-of-00001].parquet` (or .jsonl), `subset/split/0000.parquet`.
 * @param subset the `dataset_name` of a task; null where the dataset has one only
 */
export function splitFiles(paths: readonly string[], subset: string | null, split: string): string[] {
  const files = paths.flatMap((path) => splitOf(path) ?? []).filter((file) => file.split === split);
  const subsets = subset === null ? [null, ...ONLY_SUBSETS] : [subset];
  for (const wanted of subsets) {
    const found = files.filter((file) => file.subset === wanted).map(({ path }) => path);
    if (found.length > 0) return found.sort();
  }
  return [];
}

/** @param paths of all that was searched. @returns the error for a split that was not found */
export function splitMissing(
  dataset: string,
  paths: readonly string[],
  subset: string | null,
  split: string,
): AmalgamError {
  const all = paths.flatMap((path) => splitOf(path) ?? []);
  const known = [
    ...new Set(all.map((file) => (file.subset === null ? file.split : `${file.subset}: ${file.split}`))),
  ];
  const list = known.slice(0, 12).map((name) => `“${displayName(name)}”`);
  return new AmalgamError(
    'SplitMissing',
    `The dataset ${dataset} has no split “${split}”${subset === null ? '' : ` of “${subset}”`}.`,
    list.length > 0
      ? `It has ${list.join(', ')}${known.length > list.length ? ' and more' : ''}. Name one of them in the task.`
      : 'No file of it is named after a split. Choose another dataset, or give the rows as a .jsonl file.',
  );
}

function splitOf(path: string): SplitFile | undefined {
  const kind = textKind(path);
  if (!kind || kind.format === 'text') return undefined;
  const parts = path.replace(/(\.(parquet|jsonl|ndjson|json))(\.gz)?$/i, '').split('/');
  const file = parts.pop() ?? '';
  const folders = parts.filter((part) => part !== 'data');
  const numbered = /^(\d+|part-.*)$/.test(file);
  const split = numbered ? folders.pop() : file.replace(/-\d{5}-of-\d{5}(-[0-9a-f]+)?$/, '');
  if (split === undefined || folders.length > 1) return undefined;
  return { path, subset: folders[0] ?? null, split };
}

/** A file up to this size is downloaded whole, verified and stored; of a larger one the parts needed are read in place. */
const KEPT_BYTES = 64 << 20;
/** Characters taken where no number is asked for, and the most there can be. */
const DEFAULT_CHARACTERS = 200_000;
const MOST_CHARACTERS = 20_000_000;
/** Rows of a split, all of which are held, and the characters of their texts. */
const MOST_ROWS = 1_000_000;
const MOST_ROW_CHARACTERS = 1 << 28;

/** The rows of a split. */
interface SplitRows {
  rows: Row[];
  /** `owner/name@commit`, and the files that were read. */
  ref: string;
  files: string[];
}

export interface Datasets {
  /**
   * All rows of a split, by the names of its files, or from the branch of the Hub's parquet copy.
   * @param subset the `dataset_name` of a task, null where there is one only
   * @param columns those that are wanted
   * @throws AmalgamError `SplitMissing`, `ColumnMissing`, and what reading throws
   */
  rows(
    split: { dataset: string; subset: string | null; split: string; columns: readonly string[] },
    signal: AbortSignal,
    onProgress: (progress: RunningProgress) => void,
  ): Promise<SplitRows>;
  open(idOrUrl: string, signal?: AbortSignal): Promise<DatasetInfo>;
  columns(ref: string, path: string, signal?: AbortSignal): Promise<DatasetColumns>;
  read(
    request: DatasetRequest,
    signal: AbortSignal,
    onProgress: (progress: RunningProgress) => void,
  ): Promise<DatasetText>;
}

/** The datasets opened in this session, by `owner/name@commit`. */
export function openDatasets(hub: () => Hub): Datasets {
  const opened = new Map<string, HubDataset>();
  const branches = new Map<string, Promise<{ ref: string; dataset: HubDataset }>>();
  const add = async (idOrUrl: string, signal?: AbortSignal) => {
    const dataset = await openHubDataset(hub(), idOrUrl, signal);
    const ref = `${dataset.id}@${dataset.commit}`;
    opened.set(ref, dataset);
    return { ref, dataset };
  };
  const find = async (ref: string, path: string, signal?: AbortSignal) => {
    const known = opened.get(ref);
    const { ref: pinned, dataset } = known ? { ref, dataset: known } : await add(ref, signal);
    const file = dataset.files.find((f) => f.path === path);
    if (file) return { ref: pinned, dataset, file, name: `${dataset.id}: ${path}` };
    throw new AmalgamError(
      'NotFound',
      `The dataset ${dataset.id} has no file “${path}”.`,
      'Open the dataset and choose one of its files.',
    );
  };

  /** Place of a split's files: the dataset itself, or the Hub's converted copy. */
  const findSplit = async (id: string, subset: string | null, split: string, signal: AbortSignal) => {
    const searched: string[] = [];
    for (const name of id.includes('@') ? [id] : [id, `${id}@${CONVERTED_BRANCH}`]) {
      const known = branches.get(name);
      const opening = known ?? add(name, signal);
      branches.set(name, opening);
      try {
        const found = await opening;
        const paths = found.dataset.files.map(({ path }) => path);
        for (const path of paths) searched.push(path);
        const files = splitFiles(paths, subset, split);
        if (files.length > 0) return { ...found, files };
      } catch (thrown) {
        branches.delete(name);
        // not every dataset is converted
        if (name === id || errorReport(thrown).code !== 'NotFound') throw thrown;
      }
    }
    throw splitMissing(id, searched, subset, split);
  };

  return {
    async rows({ dataset: id, subset, split, columns }, signal, onProgress) {
      const { ref, dataset, files } = await findSplit(id, subset, split, signal);
      const rows: Row[] = [];
      let length = 0;
      for (const path of files) {
        const file = dataset.files.find((f) => f.path === path)!;
        const source = await openData(dataset, file, signal, onProgress);
        const take = (part: readonly Row[]) => {
          for (const row of part) {
            rows.push(row);
            length += lengthOf(row);
          }
          if (rows.length > MOST_ROWS || length > MOST_ROW_CHARACTERS) throw tooManyRows(dataset.id, split);
        };
        const name = `${dataset.id}: ${path}`;
        await withSource(source, (opened) => readRows(opened, name, path, columns, take, signal));
      }
      return { rows, ref, files };
    },
    async open(idOrUrl, signal) {
      const { ref, dataset } = await add(idOrUrl, signal);
      const files = dataset.files.flatMap(({ path, byteLength }) => {
        const kind = textKind(path);
        return kind ? [{ path, bytes: byteLength, format: kind.format }] : [];
      });
      if (files.length === 0) {
        throw new AmalgamError(
          'DatasetUnsupported',
          `The dataset ${dataset.id} has no file that can be read as text: no .parquet, .jsonl, .json or .txt.`,
          'Try its branch refs/convert/parquet (write it behind an @), where the Hub keeps most datasets as parquet.',
        );
      }
      const { id, commit } = dataset;
      const { license } = dataset.facts;
      return { ref, id, commit, files, ...(license === undefined ? {} : { license }) };
    },
    async columns(ref, path, signal) {
      const { dataset, file, name } = await find(ref, path, signal);
      return withSource(await openForHeader(folderOf(dataset), file, signal), (source) =>
        textColumns(source, name, path, signal),
      );
    },
    async read({ ref, path, column, rows, characters = DEFAULT_CHARACTERS }, signal, onProgress) {
      checkAmount(rows, characters);
      const { ref: pinned, dataset, file, name } = await find(ref, path, signal);
      const range = {
        characters,
        ...(column === undefined ? {} : { column }),
        ...(rows === undefined ? {} : { rows }),
      };
      const source = await openData(dataset, file, signal, onProgress);
      const read = await withSource(source, (s) => readText(s, name, path, range, signal));
      return { ...read, ref: pinned, path };
    },
  };
}

async function openData(
  dataset: HubDataset,
  file: ModelFile,
  signal: AbortSignal,
  onProgress: (progress: RunningProgress) => void,
): Promise<OpenSource> {
  const folder = folderOf(dataset);
  const begun = performance.now();
  const tell = (done: number, total: number) => {
    const rate = done / Math.max(1e-9, (performance.now() - begun) / 1000);
    const left = secondsLeft({ left: total - done, perSecond: rate });
    onProgress({ phase: 'downloading', done, total, rate, secondsLeft: left });
  };
  if (file.byteLength <= KEPT_BYTES) {
    return openCached(folder, file, { signal, onBytes: (bytes) => tell(bytes, file.byteLength) });
  }
  const source = await openForHeader(folder, file, signal);
  let done = 0;
  return {
    ...source,
    async read(begin, end, readSignal) {
      const bytes = await source.read(begin, end, readSignal);
      done += bytes.length;
      // how much of the file will be needed is not known before it is read
      tell(done, file.byteLength);
      return bytes;
    },
  };
}

async function withSource<T>(source: OpenSource, use: (source: OpenSource) => Promise<T>): Promise<T> {
  try {
    return await use(source);
  } finally {
    source.close();
  }
}

function folderOf({ id, commit, files }: HubDataset): ModelFolder {
  return { path: id, origin: { kind: 'hub', repo: id, revision: commit, commit }, files };
}

/** Rows of any kind of file with some of their columns. */
async function readRows(
  source: OpenSource,
  name: string,
  path: string,
  columns: readonly string[],
  take: (rows: readonly Row[]) => void,
  signal: AbortSignal,
): Promise<void> {
  const kind = textKind(path);
  if (kind?.format === 'parquet') {
    return withParquet(source, name, signal, async (file) => {
      requireColumns(name, columns, file.columns.all);
      for await (const rows of file.rows(columns, Number.POSITIVE_INFINITY)) take(rows);
    });
  }
  const text = decodeText(openStream(source, name, kind?.gzip ?? false, signal), name);
  let isFirst = true;
  for await (const row of parseRows(text, name)) {
    if (isFirst) requireColumns(name, columns, Object.keys(row));
    isFirst = false;
    take([
      Object.fromEntries(columns.map((column) => [column, Object.hasOwn(row, column) ? row[column]! : null])),
    ]);
  }
}

/** @throws AmalgamError `ColumnMissing` naming the columns there are */
export function requireColumns(name: string, wanted: readonly string[], all: readonly string[]): void {
  const missing = wanted.find((column) => !all.includes(column));
  if (missing === undefined) return;
  const list = all.slice(0, 20).map((column) => `“${displayName(column)}”`);
  throw new AmalgamError(
    'ColumnMissing',
    `${name} has no column “${displayName(missing)}”, which the task reads.`,
    `Its columns are ${list.join(', ')}${all.length > list.length ? ' and more' : ''}.`,
  );
}

/** Characters of the texts in a value. */
function lengthOf(value: RowValue): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return 0;
  return Object.values(value).reduce<number>((sum, inner) => sum + lengthOf(inner), 0);
}

function tooManyRows(id: string, split: string): AmalgamError {
  return new AmalgamError(
    'LimitExceeded',
    `The split “${split}” of ${id} has more than ${MOST_ROWS} rows, or ${MOST_ROW_CHARACTERS} characters of text.`,
    'Choose a smaller dataset for the task.',
  );
}

function checkAmount(rows: number | undefined, characters: number): void {
  const whole = (n: number) => Number.isInteger(n) && n >= 1;
  if ((rows === undefined || whole(rows)) && whole(characters) && characters <= MOST_CHARACTERS) return;
  throw new AmalgamError(
    'Usage',
    `${rows ?? 'All'} rows and ${characters} characters cannot be read.`,
    `Choose whole numbers from 1, and at most ${MOST_CHARACTERS} characters.`,
  );
}
