import { bufferSource } from '../sources/buffer-source';
import type { ModelFile, ModelFolder } from '../sources/model-folder';
import type { DownloadOptions } from './blob-download';
import { type OpenSource, openBlob } from './blob-source';
import { ensureBlob, hasBlob, missingBlobBytes } from './blobs';
import { hasSmallFile, readSmallFile } from './small-files';

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
  return openBlob(sha256);
}

/**
 * The same without downloading weights: a Hub file that is not in the cache is read in place by ranges. For headers
 * and configs, before a plan is clean.
 */
export async function openForHeader(
  folder: ModelFolder,
  file: ModelFile,
  signal?: AbortSignal,
): Promise<OpenSource> {
  if (file.sha256 === undefined) return openSmallOrLocal(folder, file, signal);
  return (await hasBlob(file.sha256)) ? openBlob(file.sha256) : withoutClosing(file);
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
  return { ...bufferSource(bytes, fileTitle(folder, file)), close() {} };
}

function withoutClosing(file: ModelFile): OpenSource {
  const source = file.open();
  return {
    byteLength: source.byteLength,
    read: (begin, end, signal) => source.read(begin, end, signal),
    close() {},
  };
}

function fileTitle(folder: ModelFolder, file: ModelFile): string {
  return `${folder.path}: ${file.path}`;
}
