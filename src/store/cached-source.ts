import { AmalgamError } from '../errors';
import { hex } from '../formats/hashes';
import { counted } from '../formats/quantity';
import { contentOf, entriesOf } from '../platform';
import { bufferSource } from '../sources/byte-source';
import type { ModelFile, ModelFolder } from '../sources/model-folder';
import type { DownloadOptions } from './blob-download';
import { ensureBlob, hasBlob, missingBlobBytes, type OpenSource, openBlob } from './blobs';
import { readWhole, removeStored, storageFolder, writeWhole } from './opfs-file';

/**
 * A source over the whole, verified content of a model file: a Hub file comes from the cache and is downloaded into
 * it first when it is not there; any other file is read where it is. Close it.
 * @throws the failures of {@link ensureBlob}, {@link openBlob} and of the file's own source.
 */
export async function openCached(
  folder: ModelFolder,
  file: ModelFile,
  options: DownloadOptions = {},
): Promise<OpenSource> {
  const { sha256, byteLength } = file;
  if (sha256 === undefined) return openSmallOrLocal(folder, file, options.signal);
  await ensureBlob({ sha256, byteLength, name: fileTitle(folder, file), source: file.open() }, options);
  const source = await openListedBlob(folder, file, sha256);
  try {
    for (const { begin, end } of readAhead.get(file) ?? []) {
      await checkAhead(folder, file, begin, await source.read(begin, end, options.signal));
    }
  } catch (thrown) {
    source.close();
    throw thrown;
  }
  return source;
}

/**
 * Compares bytes of a file, from `at` on, with parts of them that a plan was made of.
 * @throws AmalgamError `IntegrityError` where they are others
 */
export async function checkAhead(
  folder: ModelFolder,
  file: ModelFile,
  at: number,
  bytes: Uint8Array<ArrayBuffer>,
): Promise<void> {
  for (const { begin, end, sha256 } of readAhead.get(file) ?? []) {
    if (begin < at || end > at + bytes.length) continue;
    if ((await digestOf(bytes.slice(begin - at, end - at))) === sha256) continue;
    throw new AmalgamError(
      'IntegrityError',
      `${fileTitle(folder, file)} came altered when it was looked at: bytes ${begin} to ${end} are others in the file itself.`,
      'Open the model again. If it happens again, something between you and the hub alters files: try another network.',
    );
  }
}

/** Bytes `[begin, end)` as they were when only they were asked for. */
interface PartRead {
  begin: number;
  end: number;
  sha256: string;
}

/** What was read of a file, and a plan made of it, before the file was here whole and had its sha256. */
const readAhead = new WeakMap<ModelFile, PartRead[]>();

/**
 * The same file of a Hub model, read from the cache where it is there already. What is read before that cannot be checked
 * then: {@link openCached} compares it.
 */
export function throughCache(folder: ModelFolder, file: ModelFile): ModelFile {
  const { sha256, byteLength } = file;
  const parts: PartRead[] = [];
  const through: ModelFile = {
    ...file,
    open: () => ({
      ...file.open(), // its stream is what fills the cache
      async read(begin, end, signal) {
        const source = await openForHeader(folder, file, signal);
        try {
          const bytes = await source.read(begin, end, signal);
          if (sha256 === undefined || source.isWhole) return bytes;
          const digest = await digestOf(bytes);
          if (begin === 0 && end === byteLength && digest !== sha256) throw altered(file, sha256, digest);
          parts.push({ begin, end, sha256: digest });
          return bytes;
        } finally {
          source.close();
        }
      },
    }),
  };
  readAhead.set(through, parts);
  return through;
}

/**
 * The same without downloading weights: a Hub file that is not in the cache is read in place by ranges. For headers
 * and configs, before a plan is clean.
 */
export async function openForHeader(
  folder: ModelFolder,
  file: ModelFile,
  signal?: AbortSignal,
): Promise<OpenSource & { isWhole?: true }> {
  const { sha256 } = file;
  if (sha256 === undefined) return openSmallOrLocal(folder, file, signal);
  if (!(await hasBlob(sha256))) return withoutClosing(file);
  return { ...(await openListedBlob(folder, file, sha256)), isWhole: true };
}

async function openListedBlob(folder: ModelFolder, file: ModelFile, sha256: string): Promise<OpenSource> {
  const source = await openBlob(sha256);
  if (source.byteLength === file.byteLength) return source;
  source.close();
  throw falseListing(folder, file, source.byteLength);
}

/** The listing of a hub says another length than the file of that checksum has, which is in the cache. */
function falseListing({ path: folder }: ModelFolder, file: ModelFile, byteLength: number): AmalgamError {
  return new AmalgamError(
    'IntegrityError',
    `${folder} lists ${file.path} with ${counted(file.byteLength, 'byte')}; the file with that checksum has ${byteLength}.`,
    'The listing of the hub is wrong: use another copy of the model.',
  );
}

/** Bytes that {@link openCached} would have to download; 0 for files that are not on a hub. */
export async function bytesToDownload(file: ModelFile): Promise<number> {
  if (file.sha256 !== undefined) return missingBlobBytes(file.sha256, file.byteLength);
  if (file.gitSha1 === undefined) return 0;
  return (await hasSmallFile(file.gitSha1)) ? 0 : file.byteLength;
}

async function openSmallOrLocal(
  folder: ModelFolder,
  file: ModelFile,
  signal: AbortSignal | undefined,
): Promise<OpenSource> {
  if (file.gitSha1 === undefined) return withoutClosing(file);
  const bytes = await readSmallFile(file, file.gitSha1, signal);
  if (bytes.length !== file.byteLength) throw falseListing(folder, file, bytes.length);
  return { ...bufferSource(bytes, fileTitle(folder, file)), close() {} };
}

function withoutClosing(file: ModelFile): OpenSource {
  const source = file.open();
  return {
    byteLength: source.byteLength,
    read: (...what) => source.read(...what),
    ...(source.origin && { origin: source.origin }),
    close() {},
  };
}

/** A file as messages name it. */
export function fileTitle(folder: ModelFolder, file: ModelFile): string {
  return `${folder.path}: ${file.path}`;
}

/** Size limit in bytes. The Hub has files of at most 10 MB outside LFS; this leaves room for other hubs. */
const MOST_BYTES = 64 * 1024 * 1024;
/** Configs and tokenizers of some dozens of models, of about 10 MB each. */
const STORED_BYTES = 512 * 1024 * 1024;

/**
 * The content of a small Hub file (config, tokenizer) from the cache, else from the hub. The cache is keyed by the
 * file's git sha1, and content is checked against it whenever it is read, so a torn or altered copy is fetched again.
 * @throws IntegrityError when what the hub sends has another sha1 twice; LimitExceeded above 64 MiB.
 */
async function readSmallFile(
  file: ModelFile,
  gitSha1: string,
  signal?: AbortSignal,
): Promise<Uint8Array<ArrayBuffer>> {
  if (file.byteLength > MOST_BYTES) {
    throw new AmalgamError(
      'LimitExceeded',
      `${file.path} has ${counted(file.byteLength, 'byte')}, but is kept outside large-file storage.`,
      `Amalgam reads such files up to ${MOST_BYTES} bytes. Use another copy of the model.`,
    );
  }
  const folder = await storageFolder('small-files');
  const cached = await readWhole(folder, gitSha1, file.path);
  if (cached && (await gitBlobSha1(cached)) === gitSha1) return cached;

  const source = file.open();
  for (let tried = 1; ; tried++) {
    const bytes = await source.read(0, source.byteLength, signal);
    const sha1 = await gitBlobSha1(bytes);
    if (sha1 === gitSha1) {
      await writeWhole(folder, gitSha1, bytes, file.path);
      return bytes;
    }
    if (tried === 2) throw altered(file, gitSha1, sha1);
  }
}

/**
 * Removes incomplete small files (swap files, other names, files cut at their first byte), and of the others the oldest
 * until the rest takes at most `mostBytes`: no list shows them, so a user could not delete them. Files that another tab
 * is writing stay.
 * @returns names of the removed files
 */
export async function cleanSmallFiles(mostBytes = STORED_BYTES): Promise<string[]> {
  const folder = await storageFolder('small-files');
  const removed: string[] = [];
  const stored: { name: string; size: number; lastModified: number }[] = [];
  const remove = async (name: string) => {
    await removeStored(folder, name, `small-files/${name}`);
    removed.push(name);
  };
  for (const [name, handle] of await entriesOf(folder)) {
    const file = handle.kind === 'file' ? await contentOf(handle as FileSystemFileHandle) : null;
    if (file && file.size > 0 && /^[0-9a-f]{40}$/.test(name)) {
      stored.push({ name, size: file.size, lastModified: file.lastModified });
    } else await remove(name);
  }
  stored.sort((a, b) => b.lastModified - a.lastModified);
  let bytes = 0;
  for (const { name, size } of stored) {
    bytes += size;
    if (bytes > mostBytes) await remove(name);
  }
  return removed;
}

/** Whether the cache has the file. */
async function hasSmallFile(gitSha1: string): Promise<boolean> {
  const cached = await readWhole(await storageFolder('small-files'), gitSha1, gitSha1);
  return cached !== undefined && (await gitBlobSha1(cached)) === gitSha1;
}

/** Git's id of a blob: sha1 of `blob <length>`, a NUL, and the content (git `Documentation/technical`). */
async function gitBlobSha1(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const head = new TextEncoder().encode(`blob ${bytes.length}\0`);
  const whole = new Uint8Array(head.length + bytes.length);
  whole.set(head);
  whole.set(bytes, head.length);
  return digestOf(whole, 'SHA-1');
}

async function digestOf(
  bytes: Uint8Array<ArrayBuffer>,
  by: 'SHA-1' | 'SHA-256' = 'SHA-256',
): Promise<string> {
  return hex(new Uint8Array(await crypto.subtle.digest(by, bytes)));
}

function altered(file: ModelFile, expected: string, found: string): AmalgamError {
  return new AmalgamError(
    'IntegrityError',
    `${file.path} arrived altered: its ${file.sha256 === undefined ? 'git sha1' : 'sha256'} is ${found} instead of ${expected}.`,
    'Try another network; if it happens again, the copy on the hub is broken.',
  );
}
