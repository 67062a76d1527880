/** Problems, warnings and costs of a plan's calibration. */

import { AmalgamError } from '../errors';
import { counted } from '../formats/quantity';
import { recipeLevels } from '../formats/recipe';
import type { OpenModels } from '../host/models';
import { methodById } from '../merge/methods';
import { textSize } from '../merge/methods/importance-parameters';
import { imatrixChoice, importanceKind } from '../merge/plan/importance-kind';
import { AUTO } from '../merge/plan/parameters';
import type { Plan } from '../merge/plan/plan';
import { wantsLambda } from '../merge/plan/plan-lambda';
import type { Architecture } from '../models/architecture';
import { linearSites } from '../models/claim';
import { resolveArchitecture } from '../models/resolution';
import type { ImportanceReport } from '../reports/importance';
import type { PlanProblem } from '../reports/plan';
import { type CalibrationSize, SELF, TOKENS_PER_INPUT } from './calibration';
import { linearTensors, widestInput } from './linear-tensors';

interface CalibrationChoice {
  size: CalibrationSize;
  /** `self`, or the name of a text, by contributor. */
  texts: ReadonlyMap<string, string>;
}

/** Calibration texts of the models of a plan whose parameters are resolved. */
export function calibrationChoice(plan: Plan): CalibrationChoice {
  const texts = new Map<string, string>();
  for (const { models } of plan.tensors) {
    for (const { id, parameters } of models) {
      if (!texts.has(id)) texts.set(id, String(parameters.calibration ?? SELF));
    }
  }
  const calibrated = plan.tensors.find((t) => t.parameters.calibration_windows !== undefined);
  return { size: textSize(calibrated?.parameters ?? {}), texts };
}

/** Quantity that a Gram merge matches, layer by layer. */
export type Match = 'inputs' | 'outputs' | 'stream' | 'both' | 'changes';

/** Quantity that the plan's Gram merge matches. */
export function matchOf(plan: Plan): Match {
  const asked = plan.tensors.find(({ parameters }) => parameters.match !== undefined);
  return (asked?.parameters.match ?? 'inputs') as Match;
}

/** Linear layers that have no inputs of their own to be solved with: fused experts, routers, steps of a state space. */
export function averagedLayers(plan: Plan, solved: ReadonlySet<string>, tied: boolean): PlanProblem[] {
  const left = plan.tensors.filter(
    ({ name, copy, role, shape }) =>
      !copy && role.layer !== null && shape.length > 1 && role.kind !== 'norm' && !solved.has(name),
  );
  const head = tied ? ' The head is the embedding, and is merged with it, row by row.' : '';
  if (left.length === 0 && !tied) return [];
  const layers =
    left.length > 0
      ? `${counted(left.length, 'tensor')} of the blocks ${left.length === 1 ? 'has' : 'have'} no linear map that a Gram merge can solve for, and ${left.length === 1 ? 'is' : 'are'} averaged (${left[0]!.name}${left.length > 1 ? ', …' : ''}).`
      : '';
  return [
    {
      severity: 'note',
      code: 'AveragedLayers',
      message: `${layers}${head}`.trim(),
      remedy: 'No action needed.',
      ...(left.length > 0 && { tensors: left.map(({ name }) => name) }),
    },
  ];
}

interface CalibrationCost {
  kind: ImportanceReport['kind'] | undefined;
  /** Text that an importance matrix of the output is measured on. */
  imatrix: ReturnType<typeof imatrixChoice>;
  /** Resolves the architecture of the plan's output. @throws AmalgamError */
  architecture(): Promise<Architecture>;
  /** Whether a text of this name exists. */
  hasText(name: string): boolean;
}

/** Name of the output in messages. */
const OUTPUT = 'the output';

/** Problems of the calibration; none for a plan that needs none. */
export async function calibrationProblems(plan: Plan, cost: CalibrationCost): Promise<PlanProblem[]> {
  const problems: PlanProblem[] = [...misplacedAuto(plan)];
  const calibrates = cost.kind !== undefined || wantsLambda(plan.recipe);
  if (!calibrates && cost.imatrix === undefined) return problems;
  const readsNothing = matchOf(plan) === 'changes' && !wantsLambda(plan.recipe);
  if (calibrates && plan.recipe.slices) problems.push(slicesRefused);
  const { size, texts } = calibrationChoice(plan);
  const read = [
    ...(calibrates ? texts : []),
    ...(typeof cost.imatrix === 'object' ? [[OUTPUT, cost.imatrix.text] as const] : []),
  ];
  for (const [id, name] of read) {
    if (name === SELF || cost.hasText(name)) continue;
    problems.push({
      severity: 'error',
      code: 'CalibrationUnknown',
      message: `There is no text ${name} to calibrate ${id} on.`,
      remedy: 'Add the file, or set calibration: self, and the model writes its own.',
    });
  }
  if (cost.kind === 'solution' && !readsNothing) problems.push(...sharedTexts(texts));
  // a plan that has to be mended first has no output whose config could be read
  if (plan.problems.some(({ severity }) => severity === 'error')) return problems;
  try {
    const architecture = await cost.architecture();
    if (matchOf(plan) !== 'changes') problems.push(...tokenAdvice(architecture, size, cost.kind));
  } catch (thrown) {
    if (!(thrown instanceof AmalgamError)) throw thrown;
    problems.push({
      severity: 'error',
      code: 'CannotRun',
      message: `These models cannot be run here, which importance, Gram merge, lambda: auto and imatrix need. ${thrown.message}`,
      remedy: `${thrown.hint} Or choose a method that does not run the models.`,
    });
  }
  // tokens that stand for other rows in the output cannot be counted
  if (cost.kind === 'solution' && (plan.vocabulary?.output.tokens ?? null) !== null) {
    problems.push({
      severity: 'error',
      code: 'CannotRun',
      message: 'A Gram merge needs models that share one vocabulary.',
      remedy: 'Leave out tokenizer_source, or choose another method.',
    });
  }
  return problems;
}

/**
 * Peak memory of calibration: streams of all contributors side by side, Gram matrices, two layers each; where
 * outputs are matched also the merged model's streams over all texts, its layer, and a second product for each matrix.
 */
export function calibrationBytes(
  architecture: Architecture,
  { size, texts }: CalibrationChoice,
  match: Match = 'inputs',
): number {
  if (match === 'changes') return 0;
  const { hidden, blocks } = architecture;
  const rows = size.windows * size.length;
  const widest = Math.max(hidden, ...blocks.flatMap(linearSites).map(({ inputs }) => inputs));
  const models = Math.max(1, texts.size);
  const layer = 4 * hidden * (4 * hidden + 3 * widest);
  const grams = 4 * (3 * hidden ** 2 + widest ** 2);
  if (match !== 'inputs') {
    const products = 4 * widest * (2 * widest + (match === 'outputs' ? 0 : hidden));
    return models * (2 * rows * hidden * 4 + layer + products) + layer;
  }
  return models * (rows * hidden * 4 + 2 * layer + grams);
}

const slicesRefused: PlanProblem = {
  severity: 'error',
  code: 'CannotRun',
  message: 'A recipe of slices has no models that could be run whole to calibrate it.',
  remedy: 'List whole models under “models:”, or choose a method that does not run them.',
};

/** `auto` stands for one number of the whole merge; filters, slices and models have no search of their own. */
function misplacedAuto({ recipe }: Plan): PlanProblem[] {
  const levels = recipeLevels(recipe).filter(({ kind }) => kind !== 'recipe');
  const filtered = Array.isArray(recipe.parameters.lambda)
    ? recipe.parameters.lambda.some((entry) => typeof entry === 'object' && entry.value === AUTO)
    : false;
  if (!filtered && levels.every(({ parameters }) => !holdsAuto(parameters.lambda))) return [];
  return [
    {
      severity: 'error',
      code: 'ParameterInvalid',
      message: 'lambda: auto is set in a filter, a slice or a model; λ is tuned for the whole merge.',
      remedy: 'Write lambda: auto among the parameters of the recipe.',
    },
  ];
}

function holdsAuto(setting: unknown): boolean {
  if (setting === AUTO) return true;
  return Array.isArray(setting) && setting.some((entry) => typeof entry === 'object' && entry.value === AUTO);
}

/** Text that all models share makes a Gram merge worse than plain averaging. */
function sharedTexts(texts: ReadonlyMap<string, string>): PlanProblem[] {
  const given = [...texts.values()].filter((name) => name !== SELF);
  const shared = given.find((name, i) => given.indexOf(name) !== i);
  if (shared === undefined) return [];
  return [
    {
      severity: 'warning',
      code: 'CalibrationShared',
      message: `Several models are calibrated on ${shared}. In our measurements one text for all destroys the gain of a Gram merge (0–7 % worse than task arithmetic).`,
      remedy: 'Use a different text per model, or set calibration: self.',
    },
  ];
}

function tokenAdvice(
  architecture: Architecture,
  { windows, length }: CalibrationSize,
  kind: CalibrationCost['kind'],
): PlanProblem[] {
  if (kind === undefined) return [];
  const widest = widestInput(architecture);
  const tokens = windows * length;
  if (tokens >= TOKENS_PER_INPUT * widest) return [];
  return [
    {
      severity: 'warning',
      code: 'CalibrationShort',
      message: `${windows} × ${length} = ${counted(tokens, 'token')} are ${(tokens / widest).toFixed(1)} per input of the widest layer (${widest}); at least ${TOKENS_PER_INPUT} are advised.`,
      remedy: `Set calibration_windows: ${Math.ceil((TOKENS_PER_INPUT * widest) / length)} or more.`,
    },
  ];
}

// Problems and device memory of a plan's calibration.

/** The plan with the problems and the memory of its calibration. Reads the config only. */
export async function withCalibrationProblems(plan: Plan, opened: OpenModels): Promise<Plan> {
  if (plan.tensors.length === 0) return plan;
  let architecture: Architecture | undefined;
  const kind = importanceKind(plan, methodById);
  const imatrix = imatrixChoice(plan, methodById);
  const problems = await calibrationProblems(plan, {
    kind,
    imatrix,
    hasText: (name) => opened.texts.has(name),
    async architecture() {
      const { plannedConfig } = await import('../evaluate/running-model');
      architecture = resolveArchitecture(await plannedConfig(plan, opened, new AbortController().signal));
      return architecture;
    },
  });
  if (!architecture && problems.length === 0) return plan;
  const order = ['error', 'warning', 'note'];
  if (architecture && kind === 'solution' && !plan.recipe.slices) {
    const solved = new Set(linearTensors(architecture, plan).flatMap((of) => of.map((t) => t.plan.name)));
    problems.push(...averagedLayers(plan, solved, architecture.final.tied));
  }
  const all = [...plan.problems, ...problems];
  const choice = calibrationChoice(plan);
  const models = architecture && kind ? calibrationBytes(architecture, choice, matchOf(plan)) : 0;
  const output =
    architecture && imatrix ? calibrationBytes(architecture, { ...choice, texts: new Map() }) : 0;
  return {
    ...plan,
    problems: all.sort((a, b) => order.indexOf(a.severity) - order.indexOf(b.severity)),
    peakBytes: Math.max(plan.peakBytes, models, output),
  };
}
