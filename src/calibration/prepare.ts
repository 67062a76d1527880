/**
 * Everything a merge wants to know of its models before it begins: what stays of each contributor (`selector:
 * importance`), or the merged changes of linear layers (Gram merge). What was worked out before is found in the
 * browser's storage, and then no model is run.
 */

import type { Backend } from '../backend/backend';
import { countedBackend } from '../backend/counted-backend';
import type { ReadTensor } from '../inputs/read-tensor';
import type { MergeMethod } from '../merge/method';
import type { Plan } from '../merge/plan/plan';
import { wantsLambda } from '../merge/plan/with-lambda';
import { openWorkspaceFor } from '../merge/tensor/compute';
import type { Prepared, PreparedSelection, PreparedSolution } from '../merge/tensor/prepared';
import type { Architecture } from '../models/architecture';
import type { ImportanceReport } from '../reports/importance';
import { openRecords, type RecordFolder, type RecordHeader, type StoredRecord } from '../store/masks';
import { type CalibrationSize, calibrationHash, calibrationTitle } from './calibration';
import { chooseTensor, type SelectionHeader, selectionName, selectionOf, toTrim } from './choose';

import { eachLayerGrams, type LayerGrams } from './layer-grams';
import { embeddingTensor, type LinearTensor, linearTensors } from './linear-tensors';
import { type Contributor, readingFor, tokenCounts, tokensToWrite } from './readings';
import { type SolutionHeader, solutionName, solutionOf, solveTensor } from './solve-layers';

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
  signal?: AbortSignal;
  progress?: PrepareProgress;
}

export interface PrepareProgress {
  /** `writing` counts tokens, `calibrating` layers of models. */
  begin(stage: 'writing' | 'calibrating', total: number): void;
  advance(by: number, item: string): void;
}

export interface PreparedImportance {
  prepared: Prepared;
  report: ImportanceReport;
}

/** Whether a plan asks for work ahead, and for what. */
export function importanceKind(
  plan: Plan,
  methods: ReadonlyMap<string, MergeMethod>,
): ImportanceReport['kind'] | undefined {
  for (const { method, parameters } of plan.tensors) {
    const compute = methods.get(method)?.compute;
    if (compute?.kind === 'solved') return 'solution';
    if (compute?.kind === 'delta' && compute.preset(parameters).select === 'prepared') return 'selection';
  }
  return undefined;
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

interface Job extends PrepareOptions {
  layers: LinearTensor[][];
  /** sha256 of every contributor's calibration. */
  calibrations: string[];
  report: ImportanceReport;
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
    await workThrough(job, [i], layers, folder, selectionName, keep, (tensor, [grams], work) =>
      chooseTensor(tensor, grams!, { engine, work, read: job.read, folder, hashes }),
    );
  }
  return {
    selection: (tensor, model) => selections.get(key(tensor, model)),
    solution: () => undefined,
    rowWeights: () => undefined,
  };
}

/** All contributors side by side: the merged changes, and how much each counts in the rows of the embedding. */
async function prepareSolutions(job: Job): Promise<Prepared> {
  const { contributors, base, engine, architecture, plan, read, size } = job;
  const solutions = new Map<string, PreparedSolution>();
  const form = gramForm(job);
  const models = contributors.map(({ model }, i) => [model, job.calibrations[i]]);
  const folder = await openRecords(
    JSON.stringify(['solution', 1, models, base, form, engine.kind]),
    `Gram merge of ${contributors.map(({ id }) => id).join(', ')}, ${form} (${size.windows} × ${size.length} tokens)`,
  );
  const keep = (tensor: string, record: StoredRecord<SolutionHeader>) =>
    solutions.set(tensor, solutionOf(record));
  const all = contributors.map((_, i) => i);
  await workThrough(job, all, job.layers, folder, solutionName, keep, (tensor, grams, work) =>
    solveTensor(tensor, grams, { engine, work, read, folder }),
  );

  const embedding = embeddingTensor(architecture, plan);
  const weighted = embedding?.parameters.embedding === 'tokens' ? embedding.name : undefined;
  const weights = weighted === undefined ? undefined : await rowWeights(job, folder);
  return {
    selection: () => undefined,
    solution: (tensor) => solutions.get(tensor),
    rowWeights: (tensor) => (tensor === weighted ? weights : undefined),
  };
}

function gramForm({ plan }: Job): 'full' | 'diagonal' {
  return plan.tensors.some(({ parameters }) => parameters.gram === 'diagonal') ? 'diagonal' : 'full';
}

/**
 * Finds the record of every tensor, or runs the contributors and has those computed that are missing.
 *
 * @param which contributors that are run side by side
 * @param layers their tensors, layer by layer
 */
async function workThrough<H extends RecordHeader>(
  job: Job,
  which: readonly number[],
  layers: readonly (readonly LinearTensor[])[],
  folder: RecordFolder,
  nameOf: (tensor: LinearTensor) => string,
  keep: (tensor: string, record: StoredRecord<H>) => void,
  compute: (
    tensor: LinearTensor,
    grams: LayerGrams,
    work: ReturnType<typeof openWorkspaceFor>,
  ) => Promise<{ record: StoredRecord<H>; notes: string[] }>,
): Promise<void> {
  const { report, engine, progress, signal, size } = job;
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
  if (missing.every((tensors) => tensors.length === 0)) return;

  const sequences = await readings(job, which);
  const readers = [];
  const plans = missing.flat().map((tensor) => tensor.plan);
  const work = openWorkspaceFor(plans, job.methods, engine);
  try {
    const rows = size.windows * size.length;
    for (const i of which) readers.push(await job.contributors[i]!.open({ kind: 'pass', rows }));
    progress?.begin('calibrating', which.length * (missing.length + 1));
    for (const i of which) report.contributors[i]!.forwardTokens += rows;
    await eachLayerGrams(
      {
        engine,
        passages: readers.map(({ runner }, at) => ({ runner, sequences: sequences[at]! })),
        form: gramForm(job),
        wanted: (layer) => new Set(missing[layer]!.map((tensor) => tensor.site)),
        ...(signal && { signal }),
        onStep: (layer) => progress?.advance(1, layer < 0 ? 'embedding' : `layer ${layer}`),
      },
      async (layer, grams) => {
        for (const tensor of missing[layer]!) {
          const { record, notes } = await compute(tensor, grams, work);
          report.computed++;
          report.bytes += record.bytes;
          report.notes.push(...notes);
          keep(tensor.plan.name, record);
        }
      },
    );
  } finally {
    work.close();
    for (const reader of readers) reader.close();
  }
}

/** What the contributors read; written now where it is not kept. */
async function readings(job: Job, which: readonly number[]): Promise<number[][][]> {
  const { contributors, engine, size, signal, progress, report } = job;
  const self = which.filter((i) => contributors[i]!.source.kind === 'self').length;
  const both = wantsLambda(job.plan.recipe);
  let writing = false;
  const written = (tokens: number, id: string) => {
    if (!writing) progress?.begin('writing', self * tokensToWrite(size, both ? 'both' : 'calibration'));
    writing = true;
    progress?.advance(tokens, id);
  };
  const all: number[][][] = [];
  for (const i of which) {
    const contributor = contributors[i]!;
    const { sequences, writtenTokens } = await readingFor(contributor, {
      size,
      use: 'calibration',
      both,
      engine: engine.kind,
      ...(signal && { signal }),
      onProgress: (tokens) => written(tokens, contributor.id),
    });
    report.contributors[i]!.writtenTokens += writtenTokens;
    all.push(sequences);
  }
  return all;
}

const COUNTS = 'token counts';

/** cᵢ(token) = (nᵢ(token) + 1) / Σ, from how often each contributor's text used it. Kept, so that no text is needed. */
async function rowWeights(job: Job, folder: RecordFolder): Promise<Float64Array[]> {
  const { contributors, architecture } = job;
  const { vocab } = architecture;
  const found = await folder.find<RecordHeader>(COUNTS);
  let counts: Float64Array[];
  if (found) {
    const bytes = await found.read(0, 0, found.header.sections[0]!);
    const all = new Float64Array(bytes.buffer);
    counts = contributors.map((_, i) => all.subarray(i * vocab, (i + 1) * vocab));
  } else {
    const sequences = await readings(
      job,
      contributors.map((_, i) => i),
    );
    counts = sequences.map((mine) => tokenCounts(mine, vocab));
    const all = new Float64Array(counts.length * vocab);
    for (const [i, mine] of counts.entries()) all.set(mine, i * vocab);
    await folder.write<RecordHeader>({ name: COUNTS }, [new Uint8Array(all.buffer)]);
  }
  const sums = Float64Array.from({ length: vocab }, (_, token) =>
    counts.reduce((sum, mine) => sum + mine[token]! + 1, 0),
  );
  return counts.map((mine) => mine.map((n, token) => (n + 1) / sums[token]!));
}
