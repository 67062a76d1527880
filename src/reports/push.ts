/** Messages across the worker boundary when a finished output is pushed to a model repository on the Hub. */
import type { CardResult } from '../formats/card-results';
import type { Progress } from './job';

/** Files of a finished output, where they are. */
export type PushSource =
  /** Stored in the browser. */
  | { kind: 'downloads'; name: string }
  /** Below the folder that the person picked; exactly these files of it. */
  | { kind: 'folder'; handle: FileSystemDirectoryHandle; name: string; files: string[] };

/** Whom the access token belongs to. */
export interface HubAccount {
  name: string;
  /** Organizations of the account. */
  organizations: string[];
  /** False for a token that the hub reports as read-only. */
  mayWrite: boolean;
}

/** A repository as it is before anything is sent. */
export interface PushTarget {
  repo: string;
  /** Its page on the hub. */
  page: string;
  exists: boolean;
  /** The commit its main branch is at; null where it does not exist. */
  commit: string | null;
  files: string[];
  /** Those that the output has too. */
  taken: string[];
}

export interface PushRequest {
  source: PushSource;
  /** `owner/name`. */
  repo: string;
  /** Of a repository that is created; one that exists stays as it is. */
  private: boolean;
  /** Files of the repository that the person agreed to replace. */
  replace: string[];
  /** Title of the commit. */
  summary: string;
  /** Scores of the output since it was written, sent with its model card. */
  results?: CardResult[];
}

export interface PushProgress extends Omit<Progress, 'phase' | 'finished'> {
  /** `hashing`: the sha256 of large files, by which the hub knows what it has already. */
  phase: 'hashing' | 'sending' | 'committing';
  finished: never[];
}

export interface PushReport {
  repo: string;
  page: string;
  commit: string;
  /** True where the repository was created for it. */
  created: boolean;
  files: { path: string; bytes: number; sent: boolean }[];
  seconds: number;
}
