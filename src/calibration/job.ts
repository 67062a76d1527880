/** What a merge needs before it begins: importance or a Gram merge of its models, λ where the recipe leaves it open, an importance matrix. */

import { formatRecipe } from '../formats/recipe-format';
import type { InputHashes } from '../host/hashed-inputs';
import { methodById } from '../merge/methods';
import { imatrixChoice, importanceKind } from '../merge/plan/importance-kind';
import type { Plan } from '../merge/plan/plan';
import { wantsLambda, withLambda } from '../merge/plan/plan-lambda';
import type { Prepared } from '../merge/tensor/prepared';
import type { CalibrationReport } from '../reports/importance';
import { type CalibrationSize, calibrationHash, calibrationTitle } from './calibration';
import {
  type CalibrationOptions,
  calibrationSource,
  hashOf,
  type OpenContext,
  openAhead,
  openPlan,
  openReader,
  type PhaseMeter,
} from './calibration-context';
import { type Imatrix, measureImatrix } from './imatrix';
import { findLambda } from './lambda-choice';
import { prepareImportance } from './prepared-changes';
import { type Contributor, readingFor } from './readings';

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
 * Does the work that a clean plan needs ahead of it; undefined for a plan that needs none.
 * @throws AmalgamError `Cancelled`, `StorageUnavailable`, and what running models throws. What is finished is kept.
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
  progress: PhaseMeter,
): Promise<Imatrix> {
  const { engine, models, signal } = context;
  const readings = async () => {
    const all: number[][] = [];
    for (const contributor of contributors) {
      const request = { size, use: 'calibration', engine: engine.kind, signal } as const;
      all.push(...(await readingFor(contributor, request)).sequences);
    }
    return all;
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
