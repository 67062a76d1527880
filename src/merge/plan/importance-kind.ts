/** What a plan has worked out by running its models. */
import { NO_IMATRIX, usesImportance } from '../../formats/gguf-type';
import type { MergeMethod } from '../method';
import type { Plan, TensorPlan } from './plan';

type Tensors = { tensors: readonly Pick<TensorPlan, 'method' | 'parameters'>[] };
type Methods = ReadonlyMap<string, MergeMethod>;

/** Whether a plan asks for calibration, and for what: masks of its contributors, or changes that are solved for. */
export function importanceKind({ tensors }: Tensors, methods: Methods): 'selection' | 'solution' | undefined {
  for (const { method, parameters } of tensors) {
    const compute = methods.get(method)?.compute;
    if (compute?.kind === 'solved') return 'solution';
    if (compute?.kind === 'delta' && compute.preset(parameters).select === 'prepared') return 'selection';
  }
  return undefined;
}

/** Whether a plan needs, or speaks of, a calibration: `auto` may stand where it means nothing, which is to be said. */
export function asksForCalibration(plan: Pick<Plan, 'recipe'> & Tensors, methods: Methods): boolean {
  return (
    importanceKind(plan, methods) !== undefined ||
    imatrixChoice(plan, methods) !== undefined ||
    JSON.stringify(plan.recipe).includes('"auto"')
  );
}

/**
 * What the merged model reads so that the columns of its GGUF file are weighed: a text by its name, `self` for text of its
 * own, or what the contributors are calibrated on, where they are and the recipe says nothing.
 */
export function imatrixChoice(
  plan: Pick<Plan, 'recipe'> & Tensors,
  methods: Methods,
): { text: string } | 'calibration' | undefined {
  const { gguf, imatrix } = plan.recipe.amalgam;
  if (gguf === undefined || !usesImportance(gguf) || imatrix === NO_IMATRIX) return undefined;
  if (imatrix !== undefined) return { text: imatrix };
  // a Gram merge of the changes alone reads nothing
  const reads = plan.tensors.every(({ parameters }) => parameters.match !== 'changes');
  return reads && importanceKind(plan, methods) !== undefined ? 'calibration' : undefined;
}
