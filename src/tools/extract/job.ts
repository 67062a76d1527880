/** One extraction from two references to a committed adapter: weights, card, and the config last. */

import { openBackend } from '../../host/backends';
import type { OpenModels } from '../../host/models';
import { progressMeter } from '../../host/progress-meter';
import { withResources } from '../../host/resources';
import { openForReading } from '../../host/weight-inputs';
import type { ReadTensor } from '../../inputs/stored-tensor';
import { defaultsOf } from '../../reports/option';
import type { Destination, WrittenShard } from '../../write/destination';
import { commitOutput, writeWhole } from '../../write/output-commit';
import { partWriter, ShardWriter } from '../../write/shard-writer';
import { openSides } from '../difference/compare-models';
import { weightFiles } from '../difference/compare-tensors';
import type { CompareProgress } from '../difference/report';
import { type AdapterFile, readEntry } from './adapter-file';
import { checkExtraction } from './checks';
import { extractLora } from './extract-lora';
import { extractOptions } from './options';
import type { ExtractLoraReport, ExtractLoraRequest } from './report';

/** Whole tensors are copied in pieces of this size. */
const COPY_BYTES = 8 * 2 ** 20;

/**
 * Extracts an adapter. Whatever fails, the destination is discarded: nothing that looks complete is left.
 * @throws AmalgamError see {@link extractLora}; `Canceled`, and what sources, engine and destination throw
 */
async function runExtractLora(
  request: ExtractLoraRequest,
  models: OpenModels,
  signal: AbortSignal,
  onProgress: (progress: CompareProgress) => void,
): Promise<ExtractLoraReport> {
  const begin = performance.now();
  const sides = await openSides(request.base, request.finetuned, models.open);
  const { base, tuned, notes } = sides;
  const chosen = { ...defaultsOf(extractOptions), ...request };
  const { rank, maxRank, include, exclude, embeddings, vectors, dtype, seed } = chosen;
  const choices = {
    ...{ base, tuned, rank, maxRank, dtype, seed },
    settings: { include, exclude, embeddings, vectors },
    ...(request.tileElements === undefined ? {} : { tileElements: request.tileElements }),
  } as const;
  checkExtraction(choices);
  return withResources(async ({ keep, output }) => {
    // what can refuse does so before anything is downloaded
    const engine = keep(await openBackend(request.engine));
    const destination = await output(request.destination);
    const meter = progressMeter<CompareProgress>(onProgress, () => engine);
    const { read } = keep(await openForReading({ inputs: weightFiles(sides) }, models, meter, signal));
    const { file, card, config, report } = await extractLora(
      {
        ...choices,
        engine,
        read,
        signal,
        onPhase: (phase, bytes, tensors) => meter.begin(phase, bytes, tensors),
        onBytes: (bytes, tensor) => meter.advance(bytes, tensor),
        onTensor: () => meter.finishTensor(),
      },
      notes,
    );
    const files = await writeAdapter(
      destination,
      file,
      { 'README.md': card, 'adapter_config.json': config },
      read,
    );
    await commitOutput(destination, {});
    meter.flush();
    return {
      ...report,
      seconds: (performance.now() - begin) / 1000,
      stages: meter.stages(),
      files,
    };
  });
}

/** Writes small files by their names, and the weights last. */
export async function writeAdapter(
  destination: Destination,
  file: AdapterFile,
  texts: Readonly<Record<string, string>>,
  read: ReadTensor,
): Promise<ExtractLoraReport['files'] & [WrittenShard, ...unknown[]]> {
  const small = Object.entries(texts);
  for (const [path, text] of small) await writeWhole(destination, path, text);
  const weights = await writeWeights(file, destination, read);
  return [
    weights,
    ...small.map(([path, text]) => ({ file: path, bytes: new TextEncoder().encode(text).length })),
  ];
}

async function writeWeights(
  file: AdapterFile,
  destination: Destination,
  read: ReadTensor,
): Promise<WrittenShard> {
  const writer = await ShardWriter.open(destination, file.plan);
  const part = partWriter(writer.written, (bytes, at) => writer.write(bytes, at));
  try {
    for (const entry of file.entries) {
      // factors are made anew at each read, so they go out whole; copies may be large
      const piece = typeof entry.content === 'function' ? entry.byteLength : COPY_BYTES;
      for (let begin = 0; begin < entry.byteLength; begin += piece) {
        await part.append(await readEntry(entry, begin, Math.min(begin + piece, entry.byteLength), read));
      }
    }
    await writer.take(await part.finish(), file.entries.length);
    return await writer.finish();
  } catch (error) {
    writer.abort();
    throw error;
  }
}

/** The calls of the tool. */
export const jobs = { extractLora: runExtractLora } as const;
