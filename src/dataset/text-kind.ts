/** Files of a dataset that can be read as text, by their names. */

interface TextKind {
  /** `text`: as it stands. `lines`: one JSON object a line. `parquet`: columns. */
  format: 'text' | 'lines' | 'parquet';
  gzip: boolean;
}

const FORMATS: readonly [RegExp, TextKind['format']][] = [
  [/\.(txt|text|md)$/i, 'text'],
  [/\.(jsonl|ndjson|json)$/i, 'lines'],
  [/\.parquet$/i, 'parquet'],
];

/** Files of these names describe a repo and are no data. */
const ABOUT = /^(readme|license|licence|notice|citation)\b|(^|\/)(dataset_infos?|state)\.json$/i;

/** The kind of a file by its path, or undefined where it cannot be read as text. */
export function textKind(path: string): TextKind | undefined {
  if (ABOUT.test(path)) return undefined;
  const gzip = /\.gz$/i.test(path);
  const inner = gzip ? path.slice(0, -'.gz'.length) : path;
  const format = FORMATS.find(([pattern]) => pattern.test(inner))?.[1];
  return format === undefined || (gzip && format === 'parquet') ? undefined : { format, gzip };
}
