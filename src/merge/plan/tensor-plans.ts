/** The output tensors of a scope: who contributes, with which parameters, and what can be copied. */

import { type Dtype, isWeightDtype } from '../../formats/dtype';
import type { Recipe, RecipeParameters } from '../../formats/recipe';
import { canonicalRef } from '../../formats/recipe';
import { castTensor } from '../../inputs/dequantization';
import type { Model, ModelTensor } from '../../inputs/model';
import { elementCount } from '../../inputs/opened-model';
import type { Problems } from '../../inputs/problems';
import type { TensorRef, TensorView } from '../../inputs/tensor-view';
import { isOfText, isTextTower } from '../../models/aliases';
import { tensorKey } from '../../models/families';
import { hasTokenRows, isBuffer, tensorRole } from '../../models/tensor-role';
import type { MergeMethod } from '../method';
import { weightsConflict } from '../method-conflicts';
import { checkTogether } from './parameter-conflicts';
import { resolveParameters } from './parameters';
import type { ResolvedParameters, TensorPlan } from './plan';
import type { Participant, Scope } from './scopes';
import { leftOut } from './tensor-choice';
import { copiedTensor, isOnBase, isPlain, isStored } from './untouched-tensors';

interface TensorContext {
  recipe: Recipe;
  method: MergeMethod;
  /** Models that do not fit at all; they are not compared tensor by tensor. */
  unfit: ReadonlySet<Model>;
  /** The plan asks for a vocabulary already: embeddings and heads of other sizes need not be named again. */
  vocabularyAsked: boolean;
  problems: Problems;
  /** Role of an output tensor. */
  roleOf: typeof tensorRole;
  /** What the recipe says in one way for all tensors, by the model, or under '' of the method. */
  fixed: Map<string, { levels: readonly RecipeParameters[]; values: ResolvedParameters }>;
}

const OUTPUT_DTYPES = { float32: 'F32', float16: 'F16', bfloat16: 'BF16' } as const;

/** Plans the tensors of one scope; mismatches go to the problems of the context. */
export function planScope(scope: Scope, context: TensorContext): TensorPlan[] {
  const sources = scope.sources.filter(({ model }) => !context.unfit.has(model));
  const reference = scope.base ?? sources[0];
  if (!reference) return [];
  const isLeftOut = (name: string) => leftOut(context.recipe, scope.outputName(name));
  for (const source of sources) if (source !== reference) compareNames(reference, source, isLeftOut, context);
  const whole = sources.filter((source) => !isTextOnly(source, reference));
  return [...reference.tensors].flatMap(([local, tensor]) => {
    const name = scope.outputName(tensor.name);
    if (leftOut(context.recipe, name)) return keepBase(name, local, scope, context);
    const isCommon = whole.length === sources.length || isOfText(tensorKey(tensor.name, undefined));
    const having = isCommon ? sources : whole;
    if (!scope.base && having.length < sources.length) return otherTower(name, local, scope, context);
    if (scope.base && having.length === 0) return [baseAlone(name, tensor, scope.base, context)];
    return isBuffer(tensor.name)
      ? [copyPlan(name, tensor, tensor.view.origin, [], {}, context)]
      : planTensor(name, local, tensor, { ...scope, sources: having }, context);
  });
}

/** A text model beside a multimodal one, of which it is the text tower. */
function isTextOnly({ model }: Participant, reference: Participant): boolean {
  return isTextTower(model.checkpoint.config, reference.model.checkpoint.config);
}

/** Both models must have the same tensors of what is merged, buffers apart; a text model has the text tower's. */
function compareNames(
  reference: Participant,
  source: Participant,
  isLeftOut: (name: string) => boolean,
  { problems }: TensorContext,
): void {
  const lacks = (a: Participant, b: Participant) =>
    [...b.tensors]
      .filter(([local, { name }]) => !a.tensors.has(local) && !isBuffer(name) && !isLeftOut(name))
      .map(([, tensor]) => tensor.name);
  const report = (less: Model, more: Model, tensors: string[]) => {
    if (tensors.length === 0) return;
    problems.error(
      'TensorMissing',
      `${less.ref} lacks tensors that ${more.ref} has.`,
      `Take ${source.model.ref} out of the recipe, unless the two were made from one base: then leave these tensors as the base has them (exclude).`,
      tensors,
    );
  };
  const missing = lacks(source, reference);
  const others = isTextOnly(source, reference)
    ? missing.filter((name) => !isOfText(tensorKey(name, undefined)))
    : [];
  if (others.length > 0) {
    problems.note(
      'TextTowerAlone',
      `${source.model.ref} is a text model: it is merged into the text tower of ${reference.model.ref}, whose other towers do not change by it.`,
      undefined,
      others,
    );
  }
  report(
    source.model,
    reference.model,
    missing.filter((name) => !others.includes(name)),
  );
  report(reference.model, source.model, lacks(reference, source));
}

function planTensor(
  name: string,
  local: string,
  reference: ModelTensor,
  scope: Scope,
  context: TensorContext,
): TensorPlan[] {
  const { method, recipe, problems } = context;
  const base: TensorView | undefined = scope.base && { ...reference.view, onBase: true };
  const models: TensorPlan['models'] = [];
  for (const source of scope.sources) {
    const tensor = source.tensors.get(local);
    if (!tensor || !sameShape(reference, tensor, scope, source, context)) continue;
    const parameters = resolve(method.modelParameters, name, tensor.name, source, scope, context);
    models.push({
      id: source.model.ref,
      view: { ...tensor.view, onBase: isOnBase(tensor.view, base) },
      parameters,
    });
  }
  const parameters = resolve(method.parameters, name, name, undefined, scope, context);
  checkWeights(name, method, models, parameters, context);
  checkTogether(name, method, models, parameters, problems);

  const same = copiedTensor(method, base, models, parameters);
  const copy = same && isStored(same) ? same : undefined;
  const dtype = outputDtype(recipe.outDtype, reference.dtype);
  if (copy && recipe.outDtype && copy.dtype.startsWith('F8_')) {
    problems.error(
      'DtypeUnsupported',
      `${copy.folder} stores tensors as ${copy.dtype} with scales of no known form, which cannot be brought to ${recipe.outDtype}.`,
      'Use a copy of the model in F32, F16 or BF16, or leave out_dtype away to copy them as they are.',
      [name],
    );
    return [];
  }
  if (copy && (copy.dtype === dtype || !isWeightDtype(copy.dtype))) {
    return [copyPlan(name, reference, copy, models, parameters, context, base)];
  }
  const isOdd = (view: TensorView) => !isWeightDtype(view.origin.dtype);
  const odd = base && isOdd(base) ? base : models.find(({ view }) => isOdd(view))?.view;
  if (base && odd === base && !base.origin.dtype.startsWith('F8_')) {
    problems.warn(
      'DtypeCopied',
      `${base.origin.folder} stores tensors as ${base.origin.dtype}, which cannot be computed with; they stay as the base has them.`,
      'No action needed, unless these tensors are weights: then use a copy of the models in F32, F16 or BF16.',
      [name],
    );
    return [copyPlan(name, reference, base.origin, models, parameters, context, base)];
  }
  if (odd) {
    problems.error(
      'DtypeUnsupported',
      `${odd.origin.folder} stores tensors as ${odd.origin.dtype}, which can be copied but not computed with.`,
      `${isCastable(odd.origin, scope) ? 'Choose an output dtype (out_dtype), with which they are computed with too, or use' : 'Use'} a copy of the model in F32, F16 or BF16, leave these tensors as the base has them with exclude, or copy the model whole with passthrough.`,
      [name],
    );
    return [];
  }
  return [
    {
      name,
      shape: reference.shape,
      elements: elementCount(reference.shape),
      dtype,
      role: context.roleOf(name, reference.shape),
      ...(base ? { base } : {}),
      models,
      parameters,
      method: method.id,
    },
  ];
}

/** A tensor that the recipe leaves out: as the base has it, whatever the method and the dtype of the output. */
function keepBase(name: string, local: string, scope: Scope, context: TensorContext): TensorPlan[] {
  const { recipe, method, problems } = context;
  const wanted = recipe.baseModel === undefined ? undefined : canonicalRef(recipe.baseModel);
  const base = scope.base ?? scope.sources.find(({ model }) => model.ref === wanted);
  const tensor = base?.tensors.get(local);
  if (base && tensor && !(isPlain(tensor.view) && isStored(tensor.view.origin))) {
    const plan = adaptedBase(name, tensor, base, context);
    // of eight or four bits no bytes can stay
    const dtype = isStored(tensor.view.origin) ? plan.dtype : outputDtype(recipe.outDtype, plan.dtype);
    return [{ ...plan, dtype, leftOut: true }];
  }
  if (tensor) {
    const { origin } = tensor.view;
    const plan = copyPlan(name, tensor, origin, [], {}, context, { ...tensor.view, onBase: true });
    return [{ ...plan, leftOut: true }];
  }
  problems.error(
    'NoBaseToKeep',
    `include and exclude keep tensors of the base, and this recipe gives ${method.id} no base that has them.`,
    method.base === 'none'
      ? 'Give the base as base_model and list it among the models, or choose a method that works from a base.'
      : 'Give the base as base_model.',
    [name],
  );
  return [];
}

/** A tensor that a text model lacks, by a method that has no base: the one of `base_model`, where that is given. */
function otherTower(name: string, local: string, scope: Scope, context: TensorContext): TensorPlan[] {
  if (context.recipe.baseModel !== undefined) return keepBase(name, local, scope, context);
  context.problems.error(
    'NoBaseToKeep',
    'A text model is merged into a multimodal one, and the recipe does not say whose other towers stay.',
    'Give the multimodal model as base_model.',
    [name],
  );
  return [];
}

/** A tensor of a slice that nothing is merged into: the base's, in the dtype of the output. */
function baseAlone(name: string, tensor: ModelTensor, base: Participant, context: TensorContext): TensorPlan {
  const dtype = outputDtype(context.recipe.outDtype, tensor.dtype);
  const { view } = tensor;
  return isPlain(view) &&
    isStored(view.origin) &&
    (view.origin.dtype === dtype || !isWeightDtype(view.origin.dtype))
    ? copyPlan(name, tensor, view.origin, [], {}, context, { ...view, onBase: true })
    : { ...adaptedBase(name, tensor, base, context), dtype };
}

function isCastable(origin: TensorRef, { base, sources }: Scope): boolean {
  const all = [...(base ? [base] : []), ...sources].map(({ model }) => model.checkpoint);
  const tensors = all.find(({ path }) => path === origin.folder)?.tensors;
  return tensors !== undefined && castTensor(origin, tensors) !== undefined;
}

/** A tensor of a base with an adapter, or of weights in eight or four bits, as it is. */
function adaptedBase(
  name: string,
  tensor: ModelTensor,
  { model }: Participant,
  { roleOf }: TensorContext,
): TensorPlan {
  const { shape, dtype } = tensor;
  const source = { id: model.ref, parameters: { scale: 1 } };
  return {
    name,
    shape,
    elements: elementCount(shape),
    dtype,
    role: roleOf(name, shape),
    models: [{ ...source, view: { ...tensor.view, onBase: false } }],
    parameters: {},
    method: 'passthrough',
  };
}

function copyPlan(
  name: string,
  { shape }: ModelTensor,
  copy: TensorRef,
  models: TensorPlan['models'],
  parameters: ResolvedParameters,
  { method, roleOf }: TensorContext,
  base?: TensorView,
): TensorPlan {
  return {
    name,
    shape,
    elements: elementCount(shape),
    dtype: copy.dtype,
    role: roleOf(name, shape),
    copy,
    ...(base ? { base } : {}),
    models,
    parameters,
    method: method.id,
  };
}

/** What is computed is written in the recipe's dtype, else in the stored one. */
export function outputDtype(outDtype: Recipe['outDtype'], stored: Dtype): Dtype {
  return outDtype && isWeightDtype(stored) ? OUTPUT_DTYPES[outDtype] : stored;
}

function sameShape(
  reference: ModelTensor,
  tensor: ModelTensor,
  scope: Scope,
  source: Participant,
  { problems, vocabularyAsked }: TensorContext,
): boolean {
  const { shape } = reference;
  if (shape.length === tensor.shape.length && shape.every((n, i) => n === tensor.shape[i])) return true;
  const { ref } = source.model;
  const other = (scope.base ?? scope.sources[0])!.model.ref;
  const { kind } = tensorRole(tensor.name, tensor.shape);
  const tensors = [`${tensor.name}: [${tensor.shape}] instead of [${shape}]`];
  const perToken = kind === 'embedding' || kind === 'head' || hasTokenRows(tensor.name);
  const vocabulary = perToken && shape[1] === tensor.shape[1];
  if (vocabulary && vocabularyAsked) return false;
  problems.add(
    vocabulary
      ? {
          severity: 'error',
          code: 'VocabularyMismatch',
          message: `${ref} has a vocabulary of ${tensor.shape[0]}, but ${other} has ${shape[0]}.`,
          remedy: `Choose: take ${ref} out, or bring it to ${shape[0]} entries first (resize_token_embeddings). Amalgam never cuts or pads a vocabulary by itself.`,
          tensors,
        }
      : {
          severity: 'error',
          code: 'ShapeMismatch',
          message: `Tensors of ${ref} have other shapes than those of ${other}.`,
          remedy: `Take ${ref} out of the recipe, unless the two were made from one base: then leave these tensors as the base has them (exclude).`,
          tensors,
        },
  );
  return false;
}

const NO_PARAMETERS: RecipeParameters = {};

/**
 * The parameters of a tensor: those of a model, matched by the name of its own tensor, or those of the method,
 * matched by the name in the output (mergekit 0.1.4, `plan.py`: plan_tensor).
 */
function resolve(
  specs: MergeMethod['parameters'],
  outputName: string,
  tensorName: string,
  source: Participant | undefined,
  scope: Scope,
  { recipe, problems, fixed }: TensorContext,
): ResolvedParameters {
  const key = source?.model.ref ?? '';
  const own = source?.parameters ?? NO_PARAMETERS;
  const known = fixed.get(key);
  if (known?.levels[0] === own && known.levels[1] === scope.parameters) return known.values;
  const levels = [own, scope.parameters, recipe.parameters];
  const { values, faults } = resolveParameters(specs, levels, tensorName, scope.position);
  for (const { parameter, reason } of faults) {
    problems.error(
      'ParameterInvalid',
      `${parameter}${source ? ` of ${source.model.ref}` : ''} ${reason}.`,
      `Correct ${parameter} in the recipe.`,
      [outputName],
    );
  }
  const isFixed = levels.every((level) => !Object.values(level).some(Array.isArray));
  if (isFixed && faults.length === 0) fixed.set(key, { levels, values });
  return values;
}

function checkWeights(
  name: string,
  method: MergeMethod,
  models: TensorPlan['models'],
  parameters: ResolvedParameters,
  { problems }: TensorContext,
): void {
  const own = models.map((m) => m.parameters);
  const conflict = own.length > 0 && weightsConflict(method, parameters, own);
  if (!conflict) return;
  problems.error('WeightsCancel', `${method.id}: ${conflict.reason}.`, conflict.remedy, [name]);
}
