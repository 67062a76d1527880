/** Steps shared by the parts of a calibration: find records, run contributors over their text, compute tensors and store them. */
import type { Backend } from '../backend/backend';
import type { Runner } from '../forward/runner';
import type { ReadTensor } from '../inputs/stored-tensor';
import type { MergeMethod } from '../merge/method';
import type { Plan } from '../merge/plan/plan';
import { wantsLambda } from '../merge/plan/plan-lambda';
import { openWorkspaceFor } from '../merge/tensor/computation';
import type { Prepared } from '../merge/tensor/prepared';
import type { Architecture } from '../models/architecture';
import type { ImportanceReport } from '../reports/importance';
import type { RecordFolder, RecordHeader, StoredRecord } from '../store/masks';
import {
  type CalibrationMeter,
  type CalibrationSize,
  type Contributor,
  type OpenReader,
  readingsFor,
} from './calibration';
import { eachLayerGrams, type LayerGrams, type Passage } from './layer-grams';
import type { LinearTensor } from './linear-tensors';

export interface PrepareOptions {
  plan: Plan;
  methods: ReadonlyMap<string, MergeMethod>;
  architecture: Architecture;
  engine: Backend;
  read: ReadTensor;
  /** Those of the plan, in its order. */
  contributors: readonly Contributor[];
  /** sha256 of the files of the base. */
  base: string;
  size: CalibrationSize;
  /** Whether solutions are those of the factors of LoRAs, which the output is one of. */
  factored?: boolean;
  /** Opens a merge in f32, reading the tensors solved by then, with room for so many rows of activations. */
  openMerge(plan: Plan, prepared: Prepared, rows: number): Promise<{ runner: Runner; close(): void }>;
  signal?: AbortSignal;
  progress?: CalibrationMeter;
}

export interface Job extends PrepareOptions {
  layers: LinearTensor[][];
  /** sha256 of every contributor's calibration. */
  calibrations: string[];
  report: ImportanceReport;
}

export function gramForm({ plan }: Job): 'full' | 'diagonal' {
  return plan.tensors.some(({ parameters }) => parameters.gram === 'diagonal') ? 'diagonal' : 'full';
}

export type Keep<H extends RecordHeader> = (tensor: string, record: StoredRecord<H>) => void;
export type Workspace = ReturnType<typeof openWorkspaceFor>;

/** Hands over the record of every tensor that has one, and returns those that have none, layer by layer. */
export async function findRecords<H extends RecordHeader>(
  { report }: Job,
  layers: readonly (readonly LinearTensor[])[],
  folder: RecordFolder,
  nameOf: (tensor: LinearTensor) => string,
  keep: Keep<H>,
): Promise<LinearTensor[][]> {
  const missing: LinearTensor[][] = [];
  for (const tensors of layers) {
    const left: LinearTensor[] = [];
    for (const tensor of tensors) {
      const record = await folder.find<H>(nameOf(tensor));
      if (!record) left.push(tensor);
      else {
        report.reused++;
        report.bytes += record.bytes;
        keep(tensor.plan.name, record);
      }
    }
    missing.push(left);
  }
  return missing;
}

/** Counts the tensors computed and hands them over. */
export function taken<H extends RecordHeader>(
  { report }: Job,
  tensor: LinearTensor,
  { record, notes }: { record: StoredRecord<H>; notes: string[] },
  keep: Keep<H>,
): void {
  report.computed++;
  report.bytes += record.bytes;
  report.notes.push(...notes);
  keep(tensor.plan.name, record);
}

/** Workspace and running contributors, for as long as tensors are computed. */
export async function withReaders(
  job: Job,
  which: readonly number[],
  missing: readonly (readonly LinearTensor[])[],
  use: (passages: Passage[], work: Workspace, rows: number) => Promise<void>,
): Promise<void> {
  const plans = missing.flat().map((tensor) => tensor.plan);
  if (plans.length === 0) return;
  const sequences = await readings(job, which);
  const readers: OpenReader[] = [];
  const work = openWorkspaceFor(plans, job.methods, job.engine);
  try {
    const rows = job.size.windows * job.size.length;
    for (const i of which) readers.push(await job.contributors[i]!.open({ kind: 'pass', rows }));
    for (const i of which) job.report.contributors[i]!.forwardTokens += rows;
    const passages = readers.map(({ runner }, at) => ({ runner, sequences: sequences[at]! }));
    await use(passages, work, rows);
  } finally {
    work.close();
    for (const reader of readers) reader.close();
  }
}

/**
 * Runs the contributors and has the tensors computed that are missing.
 * @param which contributors that are run side by side
 */
export async function computeMissing<H extends RecordHeader>(
  job: Job,
  which: readonly number[],
  missing: readonly (readonly LinearTensor[])[],
  keep: Keep<H>,
  compute: (
    tensor: LinearTensor,
    grams: LayerGrams,
    work: Workspace,
  ) => Promise<{ record: StoredRecord<H>; notes: string[] }>,
): Promise<void> {
  const { engine, progress, signal } = job;
  await withReaders(job, which, missing, async (passages, work) => {
    progress?.begin('calibrating', which.length * (missing.length + 1));
    await eachLayerGrams(
      {
        engine,
        passages,
        form: gramForm(job),
        wanted: (layer) => sitesOf(missing[layer]!),
        ...(signal && { signal }),
        onStep: (layer) => progress?.advance(1, layer < 0 ? 'embedding' : `layer ${layer}`),
      },
      async (layer, grams) => {
        for (const tensor of missing[layer]!) taken(job, tensor, await compute(tensor, grams, work), keep);
      },
    );
  });
}

/** Inputs of these layers. */
export const sitesOf = (tensors: readonly LinearTensor[]) => new Set(tensors.map((tensor) => tensor.site));

/** Token ids of every contributor's calibration text, per window; generated now where no record has them. */
export async function readings(job: Job, which: readonly number[]): Promise<number[][][]> {
  const { contributors, engine, size, signal, progress, report } = job;
  const all = await readingsFor(
    which.map((i) => contributors[i]!),
    {
      ...{ size, use: 'calibration', both: wantsLambda(job.plan.recipe), engine: engine.kind },
      ...(signal && { signal }),
    },
    progress,
  );
  for (const [at, i] of which.entries()) report.contributors[i]!.writtenTokens += all[at]!.writtenTokens;
  return all.map(({ sequences }) => sequences);
}
