/** What a merge needs before it begins: importance or a Gram merge of its models, and λ where the recipe leaves it open. */
import { type CountedBackend, countedBackend } from '../backend/counted-backend';
import { AmalgamError } from '../errors';
import { WRITING_RESIDENT_BYTES } from '../evaluate/generate';
import { openModelOn, plannedConfig } from '../evaluate/running-model';
import type { Recipe } from '../formats/recipe';
import type { RunnerOptions } from '../forward/runner';
import { openBackend } from '../host/backends';
import type { OpenModels } from '../host/models';
import { type Inputs, openInputs } from '../host/weight-inputs';
import { inputName } from '../inputs/input-name';
import { methodById } from '../merge/methods';
import { makePlan } from '../merge/plan/make-plan';
import type { Plan } from '../merge/plan/plan';
import { wantsLambda, withLambda } from '../merge/plan/with-lambda';
import { hashInputs } from '../merge/run/output-files';
import type { Prepared } from '../merge/tensor/prepared';
import { resolveArchitecture } from '../models/resolve';
import type { BackendChoice } from '../reports/backend';
import type { AheadReport } from '../reports/importance';
import type { Progress, WorkAhead } from '../reports/job';
import { beginSha256 } from '../sources/sha256';
import { type CalibrationSource, SELF } from './calibration';
import { findLambda } from './find-lambda';
import { calibrationChoice } from './plan-problems';
import { importanceKind, prepareImportance } from './prepare';
import type { Contributor, OpenReader } from './readings';

export interface Ahead {
  /** The plan with the λ that was found. */
  plan: Plan;
  prepared?: Prepared;
  report: AheadReport;
}

export interface AheadOptions {
  models: OpenModels;
  engine: BackendChoice;
  signal: AbortSignal;
  onProgress(progress: AheadProgress): void;
}

export type AheadStage = 'downloading' | 'hashing' | WorkAhead;

export interface AheadProgress {
  stage: AheadStage;
  item: string;
  /** Bytes, tokens, layers of models, or values of λ. */
  done: number;
  total: number;
  secondsLeft: number | null;
}

/** What each stage counts. */
const UNITS: Readonly<Record<AheadStage, string>> = {
  downloading: 'bytes',
  hashing: 'bytes',
  writing: 'tokens',
  calibrating: 'layers of models',
  searching: 'values of λ',
};

/** As the progress of a merge. */
export function aheadMessage({ stage, item, done, total, secondsLeft }: AheadProgress): Progress {
  const bytes = UNITS[stage] === 'bytes';
  return {
    stage,
    item,
    tensorsDone: 0,
    tensors: 0,
    bytesDone: bytes ? done : 0,
    bytes: bytes ? total : 0,
    bytesPerSecond: 0,
    secondsLeft,
    stages: { read: 0, upload: 0, compute: 0, readback: 0, write: 0 },
    finished: [],
    ...(bytes ? {} : { counted: { done: Math.round(done), total, unit: UNITS[stage] } }),
  };
}

/**
 * Does the work that a clean plan needs ahead of it; undefined for a plan that needs none.
 * @throws AmalgamError `Cancelled`, `StorageUnavailable`, and what running models throws. What is finished is kept.
 */
export async function workAhead(plan: Plan, options: AheadOptions): Promise<Ahead | undefined> {
  const kind = importanceKind(plan, methodById);
  const wanted = wantsLambda(plan.recipe);
  if (!kind && !wanted) return undefined;
  const { models, signal } = options;
  const engine = countedBackend(await openBackend(options.engine));
  const meter = stageMeter(options.onProgress);
  let inputs: Inputs | undefined;
  try {
    const singles = new Map<string, Plan>();
    for (const id of plan.contributors) singles.set(id, await singlePlan(id, models));
    const all = allInputs([plan, ...singles.values()]);
    if (plan.bytesToDownload > 0) meter.begin('downloading', plan.bytesToDownload);
    inputs = await openInputs(all, models, signal, (bytes, name) => meter.advance(bytes, name));
    const hashes = await hashInputs(all.inputs, models, inputs, signal, {
      begin: (bytes) => meter.begin('hashing', bytes),
      advance: (bytes, name) => meter.advance(bytes, name),
    });
    const open = { engine, models, read: inputs.read, signal };
    const { size, texts } = calibrationChoice(plan);
    const contributors: Contributor[] = [];
    for (const [id, single] of singles) {
      const name = texts.get(id) ?? SELF;
      const source = await calibrationSource(name, plan.recipe, models);
      const model = await hashOf(single.inputs, hashes);
      contributors.push({ id, model, source, open: (use) => openContributor(single, open, use) });
    }
    const architecture = resolveArchitecture(await plannedConfig(plan, models, signal));
    const shared = { engine, contributors, size, signal, progress: meter };
    const base = await hashOf(baseInputs(plan), hashes);
    const importance =
      kind &&
      (await prepareImportance(kind, {
        ...shared,
        plan,
        methods: methodById,
        architecture,
        read: inputs.read,
        base,
      }));
    const prepared = importance?.prepared;
    const lambda = wanted
      ? await findLambda({
          ...shared,
          plan,
          base,
          openMerge: (merge) => openPlan(merge, open, false, prepared),
        })
      : undefined;
    return {
      plan: lambda ? withLambda(plan, lambda.chosen) : plan,
      ...(prepared ? { prepared } : {}),
      report: {
        ...(importance ? { importance: importance.report } : {}),
        ...(lambda ? { lambda } : {}),
      },
    };
  } finally {
    inputs?.close();
    engine.close();
  }
}

/** The plan of running one contributor as it is. */
async function calibrationSource(
  name: string,
  recipe: Recipe,
  models: OpenModels,
): Promise<CalibrationSource> {
  if (name === SELF) return { kind: 'self', seed: recipe.amalgam.seed ?? 0 };
  const text = await models.texts.read(name);
  if (typeof text === 'string') return { kind: 'text', name, text };
  return { kind: 'tokens', name, ids: text, heldOut: wantsLambda(recipe) };
}

async function singlePlan(model: string, models: OpenModels): Promise<Plan> {
  const recipe: Recipe = {
    mergeMethod: 'passthrough',
    models: [{ model, parameters: {} }],
    parameters: {},
    amalgam: {},
  };
  const plan = await makePlan(recipe, (ref) => models.open(ref), methodById);
  const wrong = plan.problems.find((p) => p.severity === 'error');
  if (wrong) throw new AmalgamError('PlanHasErrors', wrong.message, wrong.remedy);
  return plan;
}

interface OpenContext {
  engine: CountedBackend;
  models: OpenModels;
  read: Inputs['read'];
  signal: AbortSignal;
}

async function openPlan(
  plan: Plan,
  context: OpenContext,
  exact: boolean,
  prepared?: Prepared,
  runner: RunnerOptions = {},
) {
  const config = await plannedConfig(plan, context.models, context.signal);
  const architecture = resolveArchitecture(config);
  return openModelOn(context.engine, {
    ...context,
    plan,
    exact,
    config,
    architecture,
    runner,
    ...(prepared ? { prepared } : {}),
  });
}

async function openContributor(
  plan: Plan,
  context: OpenContext,
  use: Parameters<Contributor['open']>[0],
): Promise<OpenReader> {
  const { hidden } = resolveArchitecture(await plannedConfig(plan, context.models, context.signal));
  const passing =
    use.kind === 'pass' ? { streamBytes: use.rows * hidden * 4 } : { residentBytes: WRITING_RESIDENT_BYTES };
  const model = await openPlan(plan, context, true, undefined, passing);
  return {
    runner: model.runner,
    async prefix() {
      const { prefix } = await model.tokenizer();
      return prefix.length > 0 ? prefix : model.ends.slice(0, 1);
    },
    encode: async (text) => (await model.tokenizer()).encode(text),
    close: () => model.close(),
  };
}

/** Every weight file of the plans, once. */
function allInputs(plans: readonly Plan[]): Pick<Plan, 'inputs'> {
  const byName = new Map(
    plans.flatMap((p) => p.inputs).map((input) => [inputName(input.folder, input.file), input]),
  );
  return { inputs: [...byName.values()] };
}

/** The files that the base's tensors are stored in. */
function baseInputs(plan: Plan): Plan['inputs'] {
  const names = new Set(
    plan.tensors.flatMap(({ base }) => (base ? [inputName(base.origin.folder, base.origin.file)] : [])),
  );
  return plan.inputs.filter(({ folder, file }) => names.has(inputName(folder, file)));
}

/** One hash for several files, whatever they are called and in whatever order they come. */
async function hashOf(inputs: Plan['inputs'], hashes: ReadonlyMap<string, string>): Promise<string> {
  const list = inputs.map(({ folder, file }) => hashes.get(inputName(folder, file))!).sort();
  const hash = await beginSha256();
  hash.update(new TextEncoder().encode(list.join('\n')));
  return hash.digest();
}

interface StageMeter {
  begin(stage: AheadStage, total: number): void;
  advance(by: number, item: string): void;
}

/** Messages go out at most this often. */
const INTERVAL_MS = 100;

function stageMeter(send: (progress: AheadProgress) => void): StageMeter {
  let state = { stage: 'writing' as AheadStage, item: '', done: 0, total: 0 };
  let begun = 0;
  let sentAt = 0;
  const tell = () => {
    const seconds = (performance.now() - begun) / 1000;
    const rate = seconds > 0 ? state.done / seconds : 0;
    sentAt = performance.now();
    send({ ...state, secondsLeft: rate > 0 ? (state.total - state.done) / rate : null });
  };
  return {
    begin(stage, total) {
      begun = performance.now();
      state = { stage, item: '', done: 0, total };
      tell();
    },
    advance(by, item) {
      const done = state.done + by;
      // how many λ are tried is a guess
      state = { ...state, item, done, total: Math.max(state.total, done) };
      if (performance.now() - sentAt >= INTERVAL_MS) tell();
    },
  };
}
