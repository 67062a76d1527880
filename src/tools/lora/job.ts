/** One extraction from two references to a committed adapter: weights, card, and the config last. */

import { openBackend } from '../../host/backends';
import type { OpenModels } from '../../host/models';
import { progressMeter } from '../../host/progress-meter';
import { withResources } from '../../host/resources';
import { openForReading } from '../../host/weight-inputs';
import { defaultsOf } from '../../reports/option';
import { commitOutput } from '../../write/output-commit';
import { openSides } from '../difference/compare-models';
import { weightFiles } from '../difference/compare-tensors';
import type { CompareProgress } from '../difference/report';
import { writeAdapter } from './adapter-file';
import { checkExtraction } from './checks';
import { extractLora } from './extract-lora';
import { runMeasureLora } from './measure';
import { extractOptions } from './options';
import type { ExtractLoraReport, ExtractLoraRequest } from './report';
import { runReshapeLora } from './reshape';

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

/** The calls of the tool. */
export const jobs = {
  measureLora: runMeasureLora,
  reshapeLora: runReshapeLora,
  extractLora: runExtractLora,
} as const;
