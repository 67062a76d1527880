/** Context shared by the parts of a calibration: an engine, open files, the contributors as models that write and read. */

import { type Backend, type CountedBackend, countedBackend } from '../backend/backend';
import { AmalgamError } from '../errors';
import { WRITING_RESIDENT_BYTES } from '../evaluate/generation';
import { renderedText } from '../evaluate/job';
import { openModelOn, plannedChatTemplate, plannedConfig } from '../evaluate/running-model';
import { isConversations } from '../formats/conversations';
import { copyOf, type Recipe } from '../formats/recipe';
import type { RunnerOptions } from '../forward/runner';
import { openBackend } from '../host/backends';
import type { OpenModels } from '../host/models';
import { type Phases, type PlannedPhase, progressMeter, trackPhases } from '../host/progress-meter';
import { type HashedInputs, openHashedInputs } from '../host/weight-inputs';
import { inputName, type ReadTensor } from '../inputs/stored-tensor';
import { methodById } from '../merge/methods';
import { imatrixChoice, importanceKind } from '../merge/plan/importance-kind';
import type { Plan } from '../merge/plan/plan';
import { wantsLambda } from '../merge/plan/plan-lambda';
import { makePlan } from '../merge/plan/recipe-plan';
import type { Prepared } from '../merge/tensor/prepared';
import { resolveArchitecture } from '../models/resolution';
import type { BackendChoice } from '../reports/backend';
import type { Progress } from '../reports/job';
import { beginSha256 } from '../sources/sha256';
import {
  type CalibrationSize,
  type CalibrationSource,
  type Contributor,
  type OpenReader,
  readingFor,
  SELF,
  tokensToWrite,
} from './calibration';
import { USUAL_TRIES } from './lambda-choice';
import { calibrationChoice } from './plan-problems';

export interface CalibrationOptions {
  models: OpenModels;
  engine: BackendChoice;
  /** Whether the output is a LoRA, whose factors are solved for in place of the changes. */
  factored?: boolean;
  /** One that is open already, and stays so; default: one of `engine`. */
  backend?: Backend;
  signal: AbortSignal;
  onProgress(progress: Progress): void;
  /** Of the job that this is a part of, {@link calibrationPhases} among them. Default: these alone. */
  phases?: Phases;
}

/** The phases of {@link calibrate}, without download and hashing, which every merge has. */
export function calibrationPhases(plan: Plan): PlannedPhase[] {
  const kind = importanceKind(plan, methodById);
  const wanted = wantsLambda(plan.recipe);
  const choice = imatrixChoice(plan, methodById);
  if (!kind && !wanted && !choice) return [];
  const { size, texts } = calibrationChoice(plan);
  const self = [...texts.values()].filter((text) => text === SELF).length;
  const weight = plan.tensors.reduce((sum, { elements }) => sum + elements, 0);
  const use = kind && wanted ? 'both' : kind ? 'calibration' : 'held-out';
  const phases: PlannedPhase[] = [
    ...(self > 0 && (kind || wanted)
      ? [{ phase: 'writing' as const, work: self * tokensToWrite(size, use), weight }]
      : []),
    ...(kind
      ? [{ phase: 'calibrating' as const, work: plan.layers * (plan.contributors.length + 1), weight }]
      : []),
    ...(wanted ? [{ phase: 'searching' as const, work: USUAL_TRIES, weight }] : []),
    ...(choice ? [{ phase: 'calibrating' as const, work: plan.layers + 1, weight }] : []),
  ];
  return phases;
}

/**
 * Opens the context of a plan's calibration. The caller closes it.
 * @param runs whether its contributors are run
 * @param more plans whose files are read besides
 * @throws AmalgamError `Canceled`, `PlanHasErrors`, and what downloading throws
 */
export async function openAhead(
  plan: Plan,
  options: CalibrationOptions,
  runs = true,
  more: readonly Plan[] = [],
) {
  const { models, signal, backend } = options;
  const engine = countedBackend(backend ?? (await openBackend(options.engine)));
  const phases = options.phases ?? trackPhases(calibrationPhases(plan));
  const meter = progressMeter<Progress>(options.onProgress, () => undefined, undefined, phases);
  let inputs: HashedInputs | undefined;
  const close = () => {
    inputs?.close();
    if (!backend) engine.close();
  };
  try {
    const singles = new Map<string, Plan>();
    for (const id of runs ? plan.contributors : []) singles.set(id, await singlePlan(id, models));
    const all = allInputs([plan, ...singles.values(), ...more]);
    if (plan.bytesToDownload > 0 && !models.passing) meter.begin('downloading', plan.bytesToDownload);
    const advance = (bytes: number, name: string) => meter.advance(bytes, name);
    const hashing = { begin: (bytes: number) => meter.begin('hashing', bytes), advance };
    inputs = await openHashedInputs(all, models, signal, advance, hashing);
    const hashes = await inputs.hashAll(hashing);
    const open: OpenContext = { engine, models, read: inputs.read, signal };
    const { size, texts } = calibrationChoice(plan);
    const contributors: Contributor[] = [];
    for (const [id, single] of singles) {
      const name = texts.get(id) ?? SELF;
      const source = await calibrationSource(name, single, plan.recipe, models, signal);
      const model = await hashOf(single.inputs, hashes);
      contributors.push({ id, model, source, open: (use) => openReader(single, open, use, true) });
    }
    const architecture = resolveArchitecture(await plannedConfig(plan, models, signal));
    const base = await hashOf(baseInputs(plan), hashes);
    const shared = { engine, contributors, size, signal, base, progress: meter };
    return { open, architecture, shared, singles, hashes, close };
  } catch (thrown) {
    close();
    throw thrown;
  }
}

/**
 * Text of one of a plan's contributors, generated now where no record has it: so several can at once, before anything else reads
 * it.
 * @param size of the calibration, where it is not the plan's
 * @param enough whether writing has taken long enough
 * @throws AmalgamError as {@link openAhead}, and what running models throws
 */
export async function writeText(
  plan: Plan,
  which: number,
  wanted: { use: 'calibration' | 'held-out'; size?: CalibrationSize; enough?: () => boolean },
  options: CalibrationOptions,
): Promise<number[][]> {
  const context = await openAhead(plan, options);
  try {
    const { contributors, size, engine, signal, progress } = context.shared;
    const contributor = contributors[which]!;
    const request = { size, ...wanted };
    if (contributor.source.kind === 'self') {
      progress.begin('writing', tokensToWrite(request.size, request.use));
    }
    const { sequences } = await readingFor(contributor, {
      ...{ ...request, engine: engine.kind, signal },
      onProgress: (tokens) => progress.advance(tokens, contributor.id),
    });
    return sequences;
  } finally {
    context.close();
  }
}

/**
 * Source of a model's calibration text, from its name in a recipe; conversations are rendered with the model's own chat template.
 * @param reader the plan of the model
 * @param recipe resolves the name to a text and its settings
 * @throws AmalgamError as `renderedText`, and as fetching the text throws
 */
export async function calibrationSource(
  name: string,
  reader: Plan,
  recipe: Recipe,
  models: OpenModels,
  signal: AbortSignal,
): Promise<CalibrationSource> {
  if (name === SELF) return { kind: 'self', seed: recipe.amalgam.seed ?? 0 };
  const text = await models.texts.read(name);
  if (typeof text !== 'string') return { kind: 'tokens', name, ids: text, heldOut: wantsLambda(recipe) };
  if (!isConversations(text)) return { kind: 'text', name, text };
  const rendered = await renderedText(text, await plannedChatTemplate(reader, models, signal), signal);
  return { kind: 'text', name, text: rendered.text, rendered: true };
}

export async function singlePlan(model: string, models: OpenModels): Promise<Plan> {
  const plan = await makePlan(copyOf(model), (ref) => models.open(ref), methodById);
  const wrong = plan.problems.find((p) => p.severity === 'error');
  if (wrong) throw new AmalgamError('PlanHasErrors', wrong.message, wrong.remedy);
  return plan;
}

export interface OpenContext {
  engine: CountedBackend;
  models: OpenModels;
  read: ReadTensor;
  signal: AbortSignal;
}

export async function openPlan(
  plan: Plan,
  context: OpenContext,
  exact: boolean,
  prepared?: Prepared,
  runner: RunnerOptions = {},
) {
  const config = await plannedConfig(plan, context.models, context.signal);
  const architecture = resolveArchitecture(config);
  return openModelOn([context.engine], {
    ...context,
    plan,
    exact,
    config,
    architecture,
    runner,
    ...(prepared ? { prepared } : {}),
  });
}

/** A plan as a model that reads and writes. @param exact keep f32 where a stored model meets its adapter */
export async function openReader(
  plan: Plan,
  context: OpenContext,
  use: Parameters<Contributor['open']>[0],
  exact: boolean,
  prepared?: Prepared,
): Promise<OpenReader> {
  const { hidden } = resolveArchitecture(await plannedConfig(plan, context.models, context.signal));
  const passing =
    use.kind === 'pass' ? { streamBytes: use.rows * hidden * 4 } : { residentBytes: WRITING_RESIDENT_BYTES };
  const model = await openPlan(plan, context, exact, prepared, passing);
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
export async function hashOf(inputs: Plan['inputs'], hashes: ReadonlyMap<string, string>): Promise<string> {
  const list = inputs.map(({ folder, file }) => hashes.get(inputName(folder, file))!).sort();
  const hash = await beginSha256();
  hash.update(new TextEncoder().encode(list.join('\n')));
  return hash.digest();
}
