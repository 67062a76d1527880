/** The two small reads of opening a model: a weight file's header and a text file. */

import { AmalgamError } from '../errors';
import { counted } from '../formats/quantity';
import { headerLength, parseSafetensorsHeader, type StoredTensor } from '../formats/safetensors-header';
import type { ModelFile } from '../sources/model-folder';
import type { TensorRef } from './tensor-view';

/** Bytes fetched at first; most headers fit, so that a remote file needs one request. */
const FIRST_READ = 32 * 1024;

/**
 * The tensors of a safetensors file, from its header: one read, or two where the header is longer than 32 KiB.
 *
 * @param path key of the model folder
 * @throws AmalgamError of the header parser, naming `path/file`
 */
export async function readHeader(
  file: ModelFile,
  path: string,
  signal?: AbortSignal,
): Promise<Map<string, StoredTensor>> {
  const label = `${path}/${file.path}`;
  const source = file.open();
  const first = await source.read(0, Math.min(FIRST_READ, source.byteLength), signal);
  const end = 8 + headerLength(first.subarray(0, 8), source.byteLength, label);
  const header = new Uint8Array(end - 8);
  header.set(first.subarray(8, end));
  if (end > first.length) header.set(await source.read(first.length, end, signal), first.length - 8);
  return parseSafetensorsHeader(header, source.byteLength, label).tensors;
}

/** A stored tensor with the file it is in. */
export function tensorRef(path: string, file: ModelFile, stored: StoredTensor): TensorRef {
  const { name, dtype, shape, begin, end } = stored;
  return { folder: path, file: file.path, key: name, dtype, shape, begin, end };
}

/**
 * A small text file.
 *
 * @param most largest length in bytes that is read
 * @throws AmalgamError `LimitExceeded`, `LfsPointer`, `JsonInvalid` when it is not UTF-8
 */
export async function readSmallText(
  file: ModelFile,
  path: string,
  most: number,
  signal?: AbortSignal,
): Promise<string> {
  const label = `${path}/${file.path}`;
  if (file.byteLength > most) {
    throw new AmalgamError(
      'LimitExceeded',
      `${label} is ${counted(file.byteLength, 'byte')} long; at most ${most} are read.`,
      'No real model has such a file: it is damaged or malicious.',
    );
  }
  const source = file.open();
  const bytes = await source.read(0, source.byteLength, signal);
  const text = decode(bytes, label);
  if (text.startsWith('version https://git-lfs')) {
    throw new AmalgamError(
      'LfsPointer',
      `${label} is not the file but a git-lfs pointer to it.`,
      'The repository was cloned without git-lfs. Run “git lfs pull” there, or open the model from the Hub.',
    );
  }
  return text;
}

function decode(bytes: Uint8Array, label: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new AmalgamError(
      'JsonInvalid',
      `${label} is not UTF-8 text.`,
      'The file is damaged or is not what its name says. Get it again.',
      { cause },
    );
  }
}
