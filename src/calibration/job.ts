/** Job that computes what a merge needs first: importance or a Gram merge, λ where the recipe leaves it open, an importance matrix. */

import { countedBackend } from '../backend/backend';
import { formatRecipe } from '../formats/recipe-format';
import type { InputHashes } from '../host/weight-inputs';
import { methodById } from '../merge/methods';
import { imatrixChoice, importanceKind } from '../merge/plan/importance-kind';
import type { Plan } from '../merge/plan/plan';
import { wantsLambda, withLambda } from '../merge/plan/plan-lambda';
import type { Prepared, PreparedSelection } from '../merge/tensor/prepared';
import type { CalibrationReport, ImportanceReport } from '../reports/importance';
import { openRecords, type StoredRecord } from '../store/masks';
import {
  type CalibrationMeter,
  type CalibrationSize,
  type Contributor,
  calibrationHash,
  calibrationTitle,
  readingsFor,
} from './calibration';
import {
  type CalibrationOptions,
  calibrationSource,
  hashOf,
  type OpenContext,
  openAhead,
  openPlan,
  openReader,
} from './calibration-context';
import { computeMissing, findRecords, type Job, type PrepareOptions } from './calibration-work';
import { type Imatrix, measureImatrix } from './imatrix';
import { findLambda } from './lambda-choice';
import { linearTensors } from './linear-tensors';
import { prepareSolutions } from './prepared-solutions';
import { chooseTensor, type SelectionHeader, selectionName, selectionOf, toTrim } from './selection-records';

interface Calibrated {
  /** The plan with the λ that was found. */
  plan: Plan;
  prepared?: Prepared;
  imatrix?: Imatrix;
  report: CalibrationReport;
  /** Of all files that were read. */
  hashes: InputHashes;
}

/**
 * Runs the calibration of a clean plan; undefined for a plan that needs none.
 * @throws AmalgamError `Canceled`, `StorageUnavailable`, and what running models throws. What is finished is kept.
 */
export async function calibrate(plan: Plan, options: CalibrationOptions): Promise<Calibrated | undefined> {
  const kind = importanceKind(plan, methodById);
  const wanted = wantsLambda(plan.recipe);
  const choice = imatrixChoice(plan, methodById);
  if (!kind && !wanted && !choice) return undefined;
  const context = await openAhead(plan, options, kind !== undefined || wanted);
  try {
    const { open, architecture, shared, hashes } = context;
    const { size, contributors, progress: meter } = shared;
    const importance =
      kind &&
      (await prepareImportance(kind, {
        ...shared,
        plan,
        factored: options.factored ?? false,
        methods: methodById,
        architecture,
        read: open.read,
        openMerge: (merge, solved, rows) =>
          openPlan(merge, open, true, solved, { streamBytes: rows * architecture.hidden * 4 }),
      }));
    const prepared = importance?.prepared;
    const lambda = wanted
      ? await findLambda({
          ...shared,
          plan,
          openMerge: (merge) => openPlan(merge, open, false, prepared),
        })
      : undefined;
    const merge = lambda ? withLambda(plan, lambda.chosen) : plan;
    const texts = { size, contributors, hashes };
    const imatrix = choice && (await imatrixOf(merge, { ...texts, choice }, open, prepared, meter));
    return {
      plan: merge,
      ...(prepared ? { prepared } : {}),
      ...(imatrix ? { imatrix } : {}),
      hashes,
      report: {
        ...(importance ? { importance: importance.report } : {}),
        ...(lambda ? { lambda } : {}),
        ...(imatrix ? { imatrix: imatrix.report } : {}),
      },
    };
  } finally {
    context.close();
  }
}

/** The importance matrix of a merge, on a text of its own or on what its contributors read. */
async function imatrixOf(
  plan: Plan,
  {
    size,
    contributors,
    choice,
    hashes,
  }: {
    size: CalibrationSize;
    contributors: readonly Contributor[];
    choice: { text: string } | 'calibration';
    hashes: InputHashes;
  },
  context: OpenContext,
  prepared: Prepared | undefined,
  progress: CalibrationMeter,
): Promise<Imatrix> {
  const { engine, models, signal } = context;
  const readings = async () => {
    const request = { size, use: 'calibration', engine: engine.kind, signal } as const;
    return (await readingsFor(contributors, request)).flatMap(({ sequences }) => sequences);
  };
  const source =
    choice === 'calibration'
      ? undefined
      : await calibrationSource(choice.text, plan, plan.recipe, models, signal);
  const sources = contributors.map((contributor) => contributor.source);
  const titles = new Set(sources.map((each) => calibrationTitle(each, size)));
  const { gguf: _, ggufOnly: __, imatrix: ___, ...amalgam } = plan.recipe.amalgam;
  return measureImatrix({
    plan,
    engine,
    model: JSON.stringify([formatRecipe({ ...plan.recipe, amalgam }), await hashOf(plan.inputs, hashes)]),
    text: source
      ? { source }
      : { hashes: await Promise.all(sources.map((each) => calibrationHash(each, size))), readings },
    title: source ? calibrationTitle(source, size) : [...titles].join('; '),
    size,
    open: (use) => openReader(plan, context, use, false, prepared),
    signal,
    progress,
  });
}

// The calibration of a merge: masks of each contributor (`selector:
// importance`), or the merged changes of linear layers (Gram merge). Earlier results are found in the
// browser's storage, and then no model is run.

interface PreparedImportance {
  prepared: Prepared;
  report: ImportanceReport;
}

/**
 * Runs the calibration that the plan asks for.
 * @throws AmalgamError `NonFinite`, `TextTooShort`, `ContextTooLong`, `LimitExceeded`, `StorageUnavailable`, `StorageFull`,
 *   `Canceled` and what running models throws; what is finished by then is kept
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

/** Masks of the contributors, one after the other. */
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
      chooseTensor(tensor, grams!, { engine, work, read: job.read, folder }),
    );
  }
  return {
    selection: (tensor, model) => selections.get(key(tensor, model)),
    solution: () => undefined,
    rowWeights: () => undefined,
  };
}
