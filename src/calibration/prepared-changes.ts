/**
 * Everything a merge wants to know of its models before it begins: what stays of each contributor (`selector:
 * importance`), or the merged changes of linear layers (Gram merge). What was worked out before is found in the
 * browser's storage, and then no model is run.
 */

import { countedBackend } from '../backend/counted-backend';
import type { Prepared, PreparedSelection } from '../merge/tensor/prepared';
import type { ImportanceReport } from '../reports/importance';
import { openRecords, type StoredRecord } from '../store/masks';
import { calibrationHash, calibrationTitle } from './calibration';
import { computeMissing, findRecords, type Job, type PrepareOptions } from './calibration-work';
import { linearTensors } from './linear-tensors';
import { prepareSolutions } from './prepared-solutions';
import { chooseTensor, type SelectionHeader, selectionName, selectionOf, toTrim } from './selection-records';

interface PreparedImportance {
  prepared: Prepared;
  report: ImportanceReport;
}

/**
 * Works out what the plan asks for.
 * @throws AmalgamError `NonFinite`, `TextTooShort`, `ContextTooLong`, `LimitExceeded`, `StorageUnavailable`, `StorageFull`,
 *   `Cancelled` and what running models throws; what is finished by then is kept
 */
export async function prepareImportance(
  kind: ImportanceReport['kind'],
  options: PrepareOptions,
): Promise<PreparedImportance> {
  const begun = performance.now();
  const engine = countedBackend(options.engine);
  const job = await openJob({ ...options, engine });
  const prepared = await (kind === 'selection' ? prepareSelections(job) : prepareSolutions(job));
  const { report } = job;
  report.kind = kind;
  report.peakBytes = report.computed > 0 ? engine.peakBytes : 0;
  report.seconds = (performance.now() - begun) / 1000;
  return { prepared, report };
}

async function openJob(options: PrepareOptions): Promise<Job> {
  const { contributors, size } = options;
  const calibrations: string[] = [];
  for (const { source } of contributors) calibrations.push(await calibrationHash(source, size));
  return {
    ...options,
    layers: linearTensors(options.architecture, options.plan),
    calibrations,
    report: {
      kind: 'selection',
      contributors: contributors.map(({ id, model, source }, i) => ({
        id,
        calibration: calibrationTitle(source, size),
        calibrationSha256: calibrations[i]!,
        modelSha256: model,
        writtenTokens: 0,
        forwardTokens: 0,
      })),
      computed: 0,
      reused: 0,
      bytes: 0,
      peakBytes: 0,
      seconds: 0,
      notes: [],
    },
  };
}

/** One contributor after the other: what stays of it. */
async function prepareSelections(job: Job): Promise<Prepared> {
  const { contributors, base, engine, size } = job;
  const selections = new Map<string, PreparedSelection>();
  const key = (tensor: string, model: string) => `${model}\n${tensor}`;
  for (const [i, contributor] of contributors.entries()) {
    const { id, model, source } = contributor;
    const hashes = { calibration: job.calibrations[i]!, model, base };
    const folder = await openRecords(
      JSON.stringify(['selection', 1, hashes, engine.kind]),
      `${id}: importance on ${calibrationTitle(source, size)}`,
    );
    const layers = toTrim(job.layers, id);
    const keep = (tensor: string, record: StoredRecord<SelectionHeader>) =>
      selections.set(key(tensor, id), selectionOf(record));
    const missing = await findRecords(job, layers, folder, selectionName, keep);
    await computeMissing(job, [i], missing, keep, (tensor, [grams], work) =>
      chooseTensor(tensor, grams!, { engine, work, read: job.read, folder, hashes }),
    );
  }
  return {
    selection: (tensor, model) => selections.get(key(tensor, model)),
    solution: () => undefined,
    rowWeights: () => undefined,
  };
}
