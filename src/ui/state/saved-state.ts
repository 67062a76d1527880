/** Files that a tool has written: where they are, and under which name. */

export interface SavedOutput {
  kind: 'downloads' | 'folder';
  name: string;
  /** Name of the picked folder. */
  folder: string | null;
  files: SavedFile[];
}

export interface SavedFile {
  name: string;
  bytes?: number;
  hash?: string;
}
