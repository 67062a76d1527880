/** The weight files a job reads: downloaded where they are on the Hub, opened, closed together. */

import { inputName } from '../inputs/input-name';
import { readingRows } from '../inputs/row-reader';
import type { ReadTensor } from '../inputs/stored-tensor';
import type { OpenSource } from '../store/blob-source';
import { bytesToDownload, openCached } from '../store/cached-source';
import type { OpenModels } from './models';
import type { ProgressMeter } from './progress-meter';

export interface Inputs {
  /** By {@link inputName}. */
  source(name: string): OpenSource;
  read: ReadTensor;
  close(): void;
}

/** The progress of a job that may have to download first. */
interface DownloadMeter extends Pick<ProgressMeter, 'advance' | 'timed'> {
  begin(phase: 'downloading', bytes: number, tensors: number): void;
}

type InputFiles = readonly { folder: string; file: string }[];

/** Bytes of these files that are on the Hub and not in the cache. */
export async function missingBytes(inputs: InputFiles, models: OpenModels): Promise<number> {
  const missing = await Promise.all(
    inputs.map(({ folder, file }) => bytesToDownload(models.file(folder, file).file)),
  );
  return missing.reduce((sum, bytes) => sum + bytes, 0);
}

/**
 * Opens every weight file a job reads, with its progress: what has to be downloaded is a phase before the others, and the
 * reading is timed. Close them.
 *
 * @param plan with the bytes to download where they are known; else they are counted
 */
export async function openForReading(
  plan: { inputs: InputFiles; bytesToDownload?: number },
  models: OpenModels,
  meter: DownloadMeter,
  signal: AbortSignal,
): Promise<Inputs> {
  const bytes = plan.bytesToDownload ?? (await missingBytes(plan.inputs, models));
  if (bytes > 0) meter.begin('downloading', bytes, 0);
  const inputs = await openInputs(plan, models, signal, (came, name) => meter.advance(came, name));
  return { ...inputs, read: (...what) => meter.timed('read', () => inputs.read(...what)) };
}

/**
 * Opens every weight file, downloading first what is on the Hub and not in the cache.
 *
 * @param onDownload bytes that came (negative when a damaged piece is fetched again), and the file
 * @param share what readers get instead of a source, where several share it
 * @throws what the store and the sources throw
 */
export async function openInputs(
  plan: { inputs: InputFiles },
  models: OpenModels,
  signal: AbortSignal,
  onDownload: (bytes: number, name: string) => void,
  share: (source: OpenSource, name: string) => OpenSource = (source) => source,
): Promise<Inputs> {
  const sources = new Map<string, OpenSource>();
  const close = () => {
    for (const source of sources.values()) source.close();
  };
  try {
    for (const input of plan.inputs) {
      const { folder, file } = models.file(input.folder, input.file);
      const name = inputName(input.folder, input.file);
      let before = 0; // the store counts what it has of this file
      const onBytes = (bytes: number) => {
        onDownload(bytes - before, name);
        before = bytes;
      };
      sources.set(name, share(await openCached(folder, file, { signal, onBytes }), name));
    }
  } catch (error) {
    close();
    throw error;
  }
  return {
    source: (name) => sources.get(name)!,
    read: readingRows((ref, begin, end) =>
      sources.get(inputName(ref.folder, ref.file))!.read(ref.begin + begin, ref.begin + end, signal),
    ),
    close,
  };
}
