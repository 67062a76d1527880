/** One comparison from two references to a report and, where there is a destination, its files. */

import type { BackendSeconds } from '../../backend/backend';
import { openBackend, threadCount } from '../../host/backends';
import type { OpenModels } from '../../host/models';
import { progressMeter } from '../../host/progress-meter';
import { withResources } from '../../host/resources';
import { openForReading } from '../../host/weight-inputs';
import { defaultsOf } from '../../reports/option';
import { commitOutput, writeWhole } from '../../write/output-commit';
import { compareModels, openSides } from './compare-models';
import { bytesToCompare, requireShared, weightFiles } from './compare-tensors';
import { compareOptions } from './options';
import type { CompareProgress, CompareReport, CompareRequest } from './report';
import { reportFiles } from './report-files';
import { pairElements, pairTensors } from './tensor-pairs';

/**
 * Compares two models. Whatever fails, the destination is discarded.
 * @throws AmalgamError `Usage`, `NothingToCompare`, `Canceled`, and what sources, engine and destination throw
 */
async function runCompare(
  request: CompareRequest,
  models: OpenModels,
  signal: AbortSignal,
  onProgress: (progress: CompareProgress) => void,
): Promise<CompareReport> {
  const { threshold, loraAnalysis, allSpectra, seed = 0 } = { ...defaultsOf(compareOptions), ...request };
  const sides = await openSides(request.base, request.finetuned, models.open);
  const pairs = pairTensors(sides.base, sides.tuned);
  requireShared(sides.base, sides.tuned, pairs);
  return withResources(async ({ keep, output }) => {
    // what can refuse does so before anything is downloaded
    const elements = pairs.shared.reduce((sum, pair) => sum + pairElements(pair), 0);
    const engine = keep(await openBackend(request.engine));
    let { seconds }: { seconds: BackendSeconds } = engine;
    const destination = request.destination && (await output(request.destination));
    const meter = progressMeter<CompareProgress>(onProgress, () => ({ seconds }));
    const inputs = keep(await openForReading({ inputs: weightFiles(sides) }, models, meter, signal));
    meter.begin('comparing', bytesToCompare(pairs), pairs.shared.length);
    const comparison = await compareModels(
      {
        base: sides.base,
        tuned: sides.tuned,
        ...{ engine, inputs, threads: threadCount(engine.kind, elements) },
        threshold,
        ...{ loraAnalysis, allSpectra, seed },
        ...(request.tileElements === undefined ? {} : { tileElements: request.tileElements }),
        signal,
        onSeconds: (spent) => {
          seconds = spent;
        },
        onSpectra: (bytes, tensors) => meter.begin('decomposing', bytes, tensors),
        onTensor: (difference) => meter.finishTensor(difference),
        onBytes: (bytes, tensor) => meter.advance(bytes, tensor),
      },
      sides.notes,
    );
    const files: string[] = [];
    if (destination) {
      for (const { path, text } of reportFiles(comparison)) {
        await writeWhole(destination, path, text());
        files.push(path);
      }
      await commitOutput(destination, {});
    }
    meter.flush();
    return { ...comparison.report, stages: meter.stages(), files };
  });
}

/** The calls of the tool. */
export const jobs = { compare: runCompare } as const;
