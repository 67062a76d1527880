import { AmalgamError } from '../errors';
import { hex } from '../formats/hashes';
import { counted } from '../formats/quantity';
import { contentOf, entriesOf } from '../platform';
import type { ModelFile } from '../sources/model-folder';
import { readWhole, removeStored, storageFolder, writeWhole } from './opfs-file';

/** Size limit in bytes. The Hub has files of at most 10 MB outside LFS; this leaves room for other hubs. */
const MOST_BYTES = 64 * 1024 * 1024;
/** Configs and tokenizers of some dozens of models, of about 10 MB each. */
const STORED_BYTES = 512 * 1024 * 1024;

/**
 * The content of a small Hub file (config, tokenizer) from the cache, else from the hub. The cache is keyed by the
 * file's git sha1, and content is checked against it whenever it is read, so a torn or altered copy is fetched again.
 * @throws IntegrityError when what the hub sends has another sha1 twice; LimitExceeded above 64 MiB.
 */
export async function readSmallFile(
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
export async function hasSmallFile(gitSha1: string): Promise<boolean> {
  const cached = await readWhole(await storageFolder('small-files'), gitSha1, gitSha1);
  return cached !== undefined && (await gitBlobSha1(cached)) === gitSha1;
}

/** Git's id of a blob: sha1 of `blob <length>`, a NUL, and the content (git `Documentation/technical`). */
async function gitBlobSha1(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const head = new TextEncoder().encode(`blob ${bytes.length}\0`);
  const whole = new Uint8Array(head.length + bytes.length);
  whole.set(head);
  whole.set(bytes, head.length);
  return hex(new Uint8Array(await crypto.subtle.digest('SHA-1', whole)));
}

function altered(file: ModelFile, expected: string, found: string): AmalgamError {
  return new AmalgamError(
    'IntegrityError',
    `${file.path} arrived altered twice: its git sha1 is ${found} instead of ${expected}.`,
    'Try another network; if it happens again, the copy on the hub is broken.',
  );
}
