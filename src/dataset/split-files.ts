/** Which files of a dataset repo hold a split, by the names that are customary on the Hub. */
import { AmalgamError } from '../errors';
import { displayName } from '../formats/names';
import { textKind } from './text-kind';

/** Where the Hub keeps most datasets as parquet: `<subset>/<split>/0000.parquet`. */
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

/** @param paths of all that was searched. @returns the error for a split that is nowhere */
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
