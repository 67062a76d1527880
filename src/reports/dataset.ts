/** Datasets on the Hub as they cross the worker boundary. */

export interface DatasetInfo {
  /** `owner/name@commit`: what the other calls take. */
  ref: string;
  id: string;
  commit: string;
  license?: string;
  /** Files that can be read as text. */
  files: { path: string; bytes: number; format: 'text' | 'lines' | 'parquet' }[];
}

export interface DatasetColumns {
  /** Columns that hold text; empty for plain text. */
  columns: string[];
  /** The columns that are read as conversations, as {@link DatasetRequest.column} has them; null where there are none. */
  conversations: string | null;
  /** Rows of a parquet file, null where only reading all would show it. */
  rows: number | null;
}

export interface DatasetRequest {
  /** `owner/name[@revision]`; one that is not open yet is opened. */
  ref: string;
  path: string;
  /** Default `text`, else the conversations, else the only column of text. */
  column?: string;
  /** Most rows, default all, and most characters, default 200 000. */
  rows?: number;
  characters?: number;
}

export interface DatasetText {
  /** Conversations stay apart, one a line (formats/conversations.ts): each model's own chat template writes them out. */
  text: string;
  /** `owner/name@commit`. */
  ref: string;
  path: string;
  /** The column taken, or the columns of conversations; null for plain text. */
  column: string | null;
  /** Rows taken, and rows without a value that were left out. */
  rows: number;
  empty: number;
  /** False when a limit was reached before the end of the file. */
  whole: boolean;
}
