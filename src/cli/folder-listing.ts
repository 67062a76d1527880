import { readdir, realpath, stat } from 'node:fs/promises';
import { basename, dirname, join, sep } from 'node:path';
import { AmalgamError } from '../errors';
import type { FamilyMember } from '../formats/model-family';
import { displayName } from '../formats/names';
import { diskSource } from '../host/node/storage';
import type { ByteSource } from '../sources/byte-source';
import type { HubCommit, ModelFolder } from '../sources/model-folder';

/** A file of a listed folder. */
export interface ListedFile {
  /** Relative, forward slashes. */
  path: string;
  size: number;
  /** Where it is on disk. */
  location: string;
}

/** A folder's files, and the links in it that lead to nothing. */
interface FolderListing {
  files: Map<string, ListedFile>;
  dangling: string[];
}

/**
 * Most files and folders below a model's folder, and how deep they lie. The largest models have some hundred shards; a
 * folder with more than this is a disk or a home.
 */
const MAX_ENTRIES = 10_000;
const MAX_DEPTH = 8;

/**
 * The files below a folder, hidden ones left out, or a GGUF file and what belongs to it. Links to files are followed where they stay in the folder, or lead to
 * the blobs of the same repository in a Hub cache, whose snapshots are made of such links; links to folders are not:
 * they can run in circles.
 *
 * @throws UnsafePath for a link to a file elsewhere: a foreign folder could link to any file of this machine
 *   copied into the output. LimitExceeded for a folder that cannot be a model's, NotFound when it cannot be read
 */
export async function listFolder(folder: string): Promise<FolderListing> {
  const files = new Map<string, ListedFile>();
  const dangling: string[] = [];
  let entries = 0;
  const root = await realpath(folder).catch((thrown: Error) => {
    throw unreadable(folder, thrown);
  });
  const within = [root, ...hubBlobs(root)].map((allowed) =>
    allowed.endsWith(sep) ? allowed : allowed + sep,
  );
  if ((await stat(root)).isFile()) return { files: await listFile(folder), dangling: [] };
  // The root of a disk has folders of the system in it that cannot be listed.
  if (dirname(root) === root) throw noModelFolder(folder);
  const walk = async (inside: string, prefix: string, depth: number): Promise<void> => {
    const found = await readdir(inside, { withFileTypes: true }).catch((thrown: Error) => {
      throw unreadable(inside, thrown);
    });
    entries += found.length;
    if (entries > MAX_ENTRIES || depth > MAX_DEPTH) throw noModelFolder(folder);
    for (const entry of found) {
      if (entry.name.startsWith('.')) continue;
      const path = prefix + entry.name;
      if (entry.isDirectory()) {
        await walk(join(inside, entry.name), `${path}/`, depth + 1);
        continue;
      }
      const location = await realpath(join(inside, entry.name)).catch(() => undefined);
      const stats = location === undefined ? undefined : await stat(location).catch(() => undefined);
      if (location === undefined || stats === undefined) dangling.push(path);
      else if (stats.isFile()) {
        if (!within.some((allowed) => location.startsWith(allowed))) throw leadsOut(path, folder, location);
        files.set(path, { path, size: stats.size, location });
      }
    }
  };
  await walk(root, '', 0);
  return { files, dangling };
}

/** What is taken from beside a file of weights that is named itself. */
const BESIDE = /^(?:config|generation_config|tokenizer|tokenizer_config)\.json$|^chat_template\.jinja$/;

/** A file of weights as a folder of its own: with its other parts where the model is split, and with its config and tokenizer. */
async function listFile(path: string): Promise<Map<string, ListedFile>> {
  const [beside, name] = [dirname(path), basename(path)];
  const [, stem, of] = /^(.*)-\d{5}-of-(\d{5})\.gguf$/i.exec(name) ?? [];
  const isPart = (other: string) =>
    stem !== undefined && other.startsWith(`${stem}-`) && other.toLowerCase().endsWith(`-of-${of}.gguf`);
  const names = await readdir(beside).catch((thrown: Error) => {
    throw unreadable(beside, thrown);
  });
  const files = new Map<string, ListedFile>();
  for (const other of names) {
    if (other !== name && !isPart(other) && !BESIDE.test(other)) continue;
    const location = await realpath(join(beside, other)).catch(() => undefined);
    const stats = location === undefined ? undefined : await stat(location);
    if (location !== undefined && stats?.isFile())
      files.set(other, { path: other, size: stats.size, location });
  }
  return files;
}

/** `models--owner--name/snapshots/<commit>` has its files in `models--owner--name/blobs` (huggingface_hub). */
function hubBlobs(root: string): string[] {
  const snapshots = dirname(root);
  const repository = dirname(snapshots);
  const isSnapshot = basename(snapshots) === 'snapshots' && basename(repository).startsWith('models--');
  return isSnapshot ? [join(repository, 'blobs')] : [];
}

function leadsOut(path: string, folder: string, location: string): AmalgamError {
  return new AmalgamError(
    'UnsafePath',
    `${displayName(path)} in ${displayName(folder)} is a link to ${displayName(location)}, outside of the model's folder. It was not read.`,
    'If the link is yours, put the file itself in its place; if it is not, someone may be trying to get that file into your output.',
  );
}

function noModelFolder(folder: string): AmalgamError {
  return new AmalgamError(
    'LimitExceeded',
    `${displayName(folder)} has more than ${MAX_ENTRIES} files, or folders more than ${MAX_DEPTH} deep: it is not a model's folder.`,
    'Give the folder that holds config.json and the safetensors files.',
  );
}

function unreadable(folder: string, cause: Error): AmalgamError {
  return new AmalgamError(
    'NotFound',
    `${displayName(folder)} cannot be read: ${cause.message}.`,
    'Check the path and its permissions.',
    { cause },
  );
}

/**
 * A model folder of this machine, read by one open descriptor a file: what was hashed is what is merged.
 * @param path the name a recipe uses for it
 * @param snapshot where the folder is from, when it is in the cache of another program
 */
export function diskFolder(
  path: string,
  files: Iterable<ListedFile>,
  snapshot?: HubCommit & { member?: FamilyMember },
): ModelFolder {
  return {
    path,
    origin: { kind: 'disk', ...(snapshot ? { snapshot } : {}) },
    ...(snapshot?.member && { family: [snapshot.member] }),
    files: [...files].map((file) => {
      let source: ByteSource | undefined;
      return {
        path: file.path,
        byteLength: file.size,
        ...(snapshot && claimedSha256(file)),
        open: () => {
          const { location, size: byteLength } = file;
          source ??= diskSource({ location, byteLength, name: `${path}/${file.path}` });
          return source;
        },
      };
    }),
  };
}

/** The sha256 that the name of a blob in LFS is. */
export function claimedSha256({ location }: ListedFile): { claimedSha256: string } | undefined {
  const name = basename(location);
  return /^[0-9a-f]{64}$/.test(name) ? { claimedSha256: name } : undefined;
}
