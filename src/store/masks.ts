/**
 * Masks and other results of calibration in the browser's storage: one bit per weight, the compensated values of kept
 * weights, changes solved by a Gram merge. One folder per model and settings, one file per tensor, so that an
 * interrupted computation resumes at its tensor.
 *
 * A file is `AMALGAM1`, the length of its header (u32, then 0), the header as JSON padded with spaces to a multiple of
 * 8, the sections it names, and the sha256 of all that. A torn file has another sha256 or none, and counts as missing.
 */

import { fault } from '../errors';
import { bytesOfHex, hex, textSha256 } from '../formats/hashes';
import { contentOf, entriesOf, fileIn, folderIn, ifThere } from '../platform';
import type { MaskInfo } from '../reports/importance';
import { beginSha256 } from '../sources/sha256';
import {
  failing,
  isFolder,
  type OpfsFile,
  openOpfsFile,
  readWhole,
  removeStored,
  storageFolder,
  writeWhole,
} from './opfs-file';

const MAGIC = 'AMALGAM1';
const HEAD_BYTES = 16;
const DIGEST_BYTES = 32;
/** Read size while a file is checked. */
const PIECE_BYTES = 4 << 20;
const ABOUT = 'about.json';

/** Header fields of every file; callers add their own. */
export interface RecordHeader {
  /** Key of the record: its tensor and everything else that distinguishes it within the folder. */
  name: string;
  /** Bytes of each section, in order. */
  sections: number[];
}

/** A file that was found whole. */
export interface StoredRecord<H extends RecordHeader> {
  header: H;
  /** Bytes on the disk. */
  bytes: number;
  /** Bytes [begin, end) of a section. @throws AmalgamError `StorageFailed`, `Busy` */
  read(section: number, begin: number, end: number): Promise<Uint8Array<ArrayBuffer>>;
}

/** The records of one model and its settings, or of one Gram merge. */
export interface RecordFolder {
  readonly id: string;
  /** The record of a name, checked from its first byte to its last; undefined when there is none, or it was torn. */
  find<H extends RecordHeader>(name: string): Promise<StoredRecord<H> | undefined>;
  /** Writes a record and has it on the disk when it returns. @throws AmalgamError `StorageFull`, `StorageFailed` */
  write<H extends RecordHeader>(
    header: Omit<H, 'sections'>,
    sections: readonly Uint8Array<ArrayBuffer>[],
  ): Promise<StoredRecord<H>>;
}

/**
 * The folder of records determined by `key`.
 * @param key everything the contents depend on
 * @param title models and settings in words
 * @throws AmalgamError `StorageUnavailable`
 */
export async function openRecords(key: string, title: string): Promise<RecordFolder> {
  const id = await textSha256(key);
  const top = await storageFolder('importance');
  const folder = await folderIn(top, id, true).catch(failing(title));
  if (!(await readWhole(folder, ABOUT, title))) {
    await writeWhole(folder, ABOUT, new TextEncoder().encode(JSON.stringify({ title })), title);
  }
  return {
    id,
    async find<H extends RecordHeader>(tensor: string) {
      const name = await fileName(tensor);
      const header = await checkedHeader<H>(folder, name, tensor);
      return header && recordOf(folder, name, header);
    },
    async write<H extends RecordHeader>(
      header: Omit<H, 'sections'>,
      sections: readonly Uint8Array<ArrayBuffer>[],
    ) {
      const file = await fileName(header.name);
      const whole = { ...header, sections: sections.map((s) => s.byteLength) } as H;
      await writeRecord(folder, file, whole, sections);
      return recordOf(folder, file, whole);
    },
  };
}

/** Everything stored, with its size. */
export async function listMasks(): Promise<MaskInfo[]> {
  const found: MaskInfo[] = [];
  for (const [id, folder] of await entriesOf(await storageFolder('importance'))) {
    if (!isFolder(folder)) continue;
    let bytes = 0;
    let tensors = 0;
    for (const [name, file] of await entriesOf(folder)) {
      if (file.kind !== 'file' || name === ABOUT) continue;
      bytes += (await contentOf(file as FileSystemFileHandle)).size;
      tensors++;
    }
    found.push({ id, title: await titleOf(folder), bytes, tensors });
  }
  return found;
}

/** Removes a folder; nothing happens when it is not there. @throws AmalgamError `Busy` while it is read or written */
export async function deleteMasks(id: string): Promise<void> {
  for (const key of reading.keys()) if (key.startsWith(`${id}/`)) await stopReading(key);
  await removeStored(await storageFolder('importance'), id, 'These masks');
}

/** Bytes of a record with such a header and sections on the disk. */
export function recordBytes(header: RecordHeader): number {
  return dataBegin(header) + header.sections.reduce((a, b) => a + b, 0) + DIGEST_BYTES;
}

function headerBytes(header: RecordHeader): Uint8Array<ArrayBuffer> {
  const text = new TextEncoder().encode(JSON.stringify(header));
  const padded = new Uint8Array(Math.ceil(text.length / 8) * 8).fill(0x20);
  padded.set(text);
  return padded;
}

function dataBegin(header: RecordHeader): number {
  return HEAD_BYTES + headerBytes(header).length;
}

async function writeRecord(
  folder: FileSystemDirectoryHandle,
  fileName: string,
  header: RecordHeader,
  sections: readonly Uint8Array<ArrayBuffer>[],
): Promise<void> {
  const text = headerBytes(header);
  const head = new Uint8Array(HEAD_BYTES);
  head.set(new TextEncoder().encode(MAGIC));
  new DataView(head.buffer).setUint32(8, text.length, true);
  const hash = await beginSha256();
  await stopReading(`${folder.name}/${fileName}`);
  const file = await openOpfsFile(folder, fileName, header.name, 'create');
  try {
    file.resize(recordBytes(header));
    let at = 0;
    for (const part of [head, text, ...sections]) {
      hash.update(part);
      file.writeAll(part, at);
      at += part.length;
    }
    file.writeAll(bytesOfHex(hash.digest()), at);
    file.flush();
  } finally {
    file.close();
  }
}

/** The header of a file whose sha256 is right; undefined for a missing or torn one. */
async function checkedHeader<H extends RecordHeader>(
  folder: FileSystemDirectoryHandle,
  fileName: string,
  name: string,
): Promise<H | undefined> {
  await stopReading(`${folder.name}/${fileName}`);
  if (!(await ifThere(fileIn(folder, fileName)).catch(failing(name)))) return undefined;
  const file = await openOpfsFile(folder, fileName, name, 'read-only');
  try {
    const size = file.size();
    if (size < HEAD_BYTES + DIGEST_BYTES) return undefined;
    const hash = await beginSha256();
    const end = size - DIGEST_BYTES;
    for (let at = 0; at < end; at += PIECE_BYTES) hash.update(file.read(at, Math.min(at + PIECE_BYTES, end)));
    if (hash.digest() !== hex(file.read(end, size))) return undefined;
    const head = file.read(0, HEAD_BYTES);
    if (new TextDecoder().decode(head.subarray(0, 8)) !== MAGIC) return undefined;
    const length = new DataView(head.buffer).getUint32(8, true);
    const header = JSON.parse(new TextDecoder().decode(file.read(HEAD_BYTES, HEAD_BYTES + length))) as H;
    return header.name === name ? header : undefined;
  } finally {
    file.close();
  }
}

function recordOf<H extends RecordHeader>(
  folder: FileSystemDirectoryHandle,
  fileName: string,
  header: H,
): StoredRecord<H> {
  const data = dataBegin(header);
  return {
    header,
    bytes: recordBytes(header),
    async read(section, begin, end) {
      const before = header.sections.slice(0, section).reduce((a, b) => a + b, 0);
      if (begin < 0 || end > header.sections[section]!) {
        throw fault(`${header.name}: bytes ${begin} to ${end} of section ${section} do not exist.`);
      }
      return readPart(folder, fileName, header.name, data + before + begin, data + before + end);
    },
  };
}

/** Records that are read, each by one handle: a job reads them part by part, and opening takes longer than reading. */
const reading = new Map<string, { file: Promise<OpfsFile>; timer?: ReturnType<typeof setTimeout> }>();
/** Milliseconds until an unread record is closed: another tab may want to write or delete it. */
const IDLE_MS = 500;

async function readPart(
  folder: FileSystemDirectoryHandle,
  fileName: string,
  what: string,
  begin: number,
  end: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const key = `${folder.name}/${fileName}`;
  const entry = reading.get(key) ?? { file: openOpfsFile(folder, fileName, what, 'read-only') };
  reading.set(key, entry);
  try {
    const file = await entry.file;
    clearTimeout(entry.timer);
    entry.timer = setTimeout(() => void stopReading(key), IDLE_MS);
    return file.read(begin, end);
  } catch (thrown) {
    await stopReading(key);
    throw thrown;
  }
}

async function stopReading(key: string): Promise<void> {
  const entry = reading.get(key);
  if (!entry) return;
  reading.delete(key);
  clearTimeout(entry.timer);
  const file = await entry.file.catch(() => undefined); // what was not opened is not closed
  file?.close();
}

async function titleOf(folder: FileSystemDirectoryHandle): Promise<string> {
  const bytes = await readWhole(folder, ABOUT, folder.name);
  try {
    const { title } = JSON.parse(new TextDecoder().decode(bytes)) as { title?: unknown };
    return typeof title === 'string' ? title : folder.name;
  } catch {
    return folder.name; // torn: what it belonged to is not known any more, but it can still be deleted
  }
}

async function fileName(name: string): Promise<string> {
  return (await textSha256(name)).slice(0, 32);
}
