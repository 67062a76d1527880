import type { FamilyMember } from '../formats/model-family';
import type { ByteSource } from './byte-source';

/** A folder of model files (a checkpoint or an adapter), wherever it lives. */
export interface ModelFolder {
  /** The name a recipe uses for it: `samples/base`, a folder name, or `owner/name`. */
  readonly path: string;
  readonly origin: ModelOrigin;
  /** Relative paths with forward slashes, in the order the origin lists them. */
  readonly files: readonly ModelFile[];
  /** It first, then the models it was made from, where the origin says so, with their licenses. */
  readonly family?: readonly FamilyMember[];
}

export type ModelOrigin =
  | { kind: 'sample' }
  | { kind: 'local' }
  /** A folder that the command reads; a snapshot in the cache of huggingface_hub names its commit on the Hub. */
  | { kind: 'disk'; snapshot?: HubCommit }
  | ({ kind: 'hub'; revision: string } & HubCommit);

/** A repository on the Hub as it was. */
export interface HubCommit {
  repo: string;
  commit: string;
}

/** The repository on the Hub that a folder is, wherever its bytes are. */
export function hubCommit(origin: ModelOrigin): HubCommit | undefined {
  if (origin.kind === 'disk') return origin.snapshot;
  return origin.kind === 'hub' ? origin : undefined;
}

export interface ModelFile {
  readonly path: string;
  readonly byteLength: number;
  /** LFS sha256 in lower-case hex where the origin knows it. */
  readonly sha256?: string;
  /** sha256 that its name in the cache of huggingface_hub claims; trusted once the file was hashed. */
  readonly claimedSha256?: string;
  /** git blob sha1 of a small Hub file that is not in LFS. */
  readonly gitSha1?: string;
  /** It was made of another file, and needs no download. */
  readonly isMade?: true;
  /** A source for the file at the origin. Opening costs nothing; reading does. */
  open(): ByteSource;
}

/** The file at `path`, or undefined. */
export function findFile(folder: ModelFolder, path: string): ModelFile | undefined {
  return folder.files.find((f) => f.path === path);
}
