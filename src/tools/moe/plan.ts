/**
 * From a recipe of experts to a plan: everything but the MLPs is the base's, each expert's MLPs are those of its model, and a
 * router is made for every layer. The wirings of both model types say which tensor becomes which.
 */
import { maskKey, normals } from '../../backend/philox';
import { AmalgamError } from '../../errors';
import { largestLayer } from '../../evaluate/running-model';
import { isWeightDtype } from '../../formats/dtype';
import { type ModelConfig, parseModelConfig } from '../../formats/model-config';
import { displayName } from '../../formats/names';
import { counted } from '../../formats/quantity';
import { canonicalRef, copyOf, type Recipe, repositoriesOf } from '../../formats/recipe';
import type { OpenModels } from '../../host/models';
import { cachedBytes } from '../../host/storage';
import { collectProblems, type Problems } from '../../inputs/problems';
import { derivedTensor } from '../../inputs/row-map';
import type { TensorView } from '../../inputs/tensor-view';
import { cardOf } from '../../merge/plan/extras';
import type { Plan, TensorPlan } from '../../merge/plan/plan';
import { completePlan } from '../../merge/plan/recipe-plan';
import { outputDtype } from '../../merge/plan/tensor-plans';
import type { Architecture, Block, Experts, Linear, Mlp } from '../../models/architecture';
import { claimTensors, expectedTensors } from '../../models/claim';
import { resolveArchitecture } from '../../models/resolution';
import { inTensorOrder, tensorRole } from '../../models/tensor-role';
import { planRecipe } from '../../recipe/recipe-jobs';
import { configOf } from '../write-plan';
import { formOf, type MoeForm, moeConfig } from './forms';
import { formatMoeRecipe, type MoeExpert, type MoeRecipe, moeModels, readsPrompts } from './recipe';
import type { MoeFigures, MoePlanRequest } from './report';

/** Rows of the routers by layer, [experts + gated shared experts][hidden]; filled before the plan is run. */
export type Gates = Float32Array[][];

export interface MoePlan extends MoeFigures {
  plan: Plan;
  /** Of the base. */
  architecture: Architecture;
  gates: Gates;
}

/** A model whose MLPs become experts. */
interface Dense {
  ref: string;
  plan: Plan;
  config: ModelConfig;
  architecture: Architecture;
  /** By the names of the architecture. */
  tensors: ReadonlyMap<string, TensorPlan>;
}

/**
 * Plans a mixture from headers and configs alone. Problems of single models are in the plan.
 * @throws AmalgamError `ModelUnknown`, `ArchitectureUnsupported` where no form fits, `ShapeMismatch`, `TensorMissing`,
 *   `ConfigInvalid`
 */
export async function planMoe(
  { recipe, form: output }: MoePlanRequest,
  models: OpenModels,
): Promise<MoePlan> {
  const problems = collectProblems();
  const copied = await copyRecipe(recipe, models);
  const plans = new Map<string, Plan>();
  for (const ref of moeModels(recipe)) {
    const plan = await planRecipe({ ...copied, ...copyOf(ref) }, models);
    for (const problem of plan.problems) problems.add(problem);
    plans.set(ref, plan);
  }
  if (problems.hasErrors()) throw faulty(problems);
  const dense = new Map([...plans].map(([ref, plan]) => [ref, denseModel(ref, plan)]));
  const base = dense.get(canonicalRef(recipe.baseModel))!;
  const types = [...dense.values()].map(({ architecture }) => architecture.modelType);
  const form = formOf(recipe, types);
  for (const model of dense.values()) requireFit(model, base);
  const { experts, sharedExperts, expertsPerToken } = recipe;
  const sizes = { experts: experts.length, chosen: expertsPerToken, shared: sharedExperts.length };
  const text = moeConfig(form, base.config, base.architecture, sizes);
  const architecture = resolveArchitecture(parseModelConfig(text, 'config.json'));
  requireAlike(form, base, architecture);
  const gates: Gates = [];
  const tensors = inTensorOrder([
    ...outsideTensors(base),
    ...architecture.blocks.flatMap((block) => blockTensors(block, recipe, dense, gates)),
  ]);
  noteRecipe(recipe, dense, problems);
  const { gguf, ggufOnly, shardBytes } = output;
  const written: Recipe = {
    ...copied,
    ...copyOf(base.ref),
    amalgam: { shardBytes, ...(gguf === 'none' ? {} : { gguf, ...(ggufOnly && { ggufOnly }) }) },
  };
  const refs = [...dense.keys()];
  const opened = new Map(
    await Promise.all(
      refs.flatMap(repositoriesOf).map(async (ref) => [ref, await models.open(ref)] as const),
    ),
  );
  const madeBy = { key: 'moe', text: formatMoeRecipe(recipe) };
  const card = await cardOf(
    { ...written, baseModel: base.ref, models: refs.map((model) => ({ model, parameters: {} })) },
    { title: `a mixture of experts (${form.title})`, reference: REFERENCE, recipe: madeBy.text },
    opened,
    'transformers',
    problems,
  );
  const draft: Plan = {
    ...base.plan,
    recipe: written,
    madeBy,
    base: base.ref,
    contributors: refs,
    tensors,
    shards: [],
    extras: [
      ...base.plan.extras.flatMap((extra) => {
        if (extra.path === 'config.json') return [{ ...extra, content: { text } }];
        return card.some(({ path }) => path === extra.path) ? [] : [extra];
      }),
      ...card.map((file) => (file.path === 'mergekit_config.yml' ? { ...file, path: RECIPE_FILE } : file)),
    ],
  };
  const folders = new Map([...opened].map(([path, { folder }]) => [path, folder]));
  const plan = await completePlan(draft, folders, architecture.vocab, problems, await cachedBytes());
  const { title } = form;
  // prompts run through the base two layers at a time, before anything is written
  const peakBytes = readsPrompts(recipe)
    ? Math.max(plan.peakBytes, 2 * largestLayer(base.plan))
    : plan.peakBytes;
  return {
    ...{ plan: { ...plan, peakBytes }, architecture: base.architecture, gates, title },
    ...{ experts: experts.length, expertsPerToken, parameters: parametersOf(architecture) },
  };
}

/** mergekit-moe writes its recipe under this name. */
const RECIPE_FILE = 'mergekit_moe_config.yml';
const REFERENCE = { label: 'mergekit', url: 'https://github.com/arcee-ai/mergekit/blob/main/docs/moe.md' };

/** All models are read in one dtype: the recipe's, else that of the base. */
async function copyRecipe({ dtype, baseModel }: MoeRecipe, models: OpenModels): Promise<Recipe> {
  const base = await models.open(repositoriesOf(baseModel)[0]);
  const own = base.kind === 'checkpoint' ? base.config?.dtype : undefined;
  const outDtype = dtype ?? DTYPES.find((one) => one === own);
  return { ...copyOf(), ...(outDtype && { outDtype }) };
}

const DTYPES = ['float32', 'float16', 'bfloat16'] as const;

function faulty(problems: Problems): AmalgamError {
  const errors = problems.list().filter(({ severity }) => severity === 'error');
  return new AmalgamError(
    'PlanHasErrors',
    errors.map(({ message }) => message).join(' '),
    [...new Set(errors.map(({ remedy }) => remedy))].join(' '),
  );
}

function denseModel(ref: string, plan: Plan): Dense {
  const config = configOf(plan, displayName(ref), 'MLPs');
  const architecture = resolveArchitecture(config);
  const stored = new Map(plan.tensors.map((tensor) => [tensor.name, tensor]));
  const claimed = claimTensors(architecture, stored);
  const tensors = new Map([...claimed].map(([name, own]) => [name, stored.get(own)!]));
  return { ref, plan, config, architecture, tensors };
}

const branchesOf = (block: Block) => block.steps.flatMap(({ branches }) => branches);
const mlpOf = (block: Block) =>
  branchesOf(block).flatMap(({ part }) => (part.kind === 'mlp' ? [part] : []))[0];

/** An expert's MLPs must be where the base's are, and of their shape. */
function requireFit({ ref, architecture }: Dense, base: Dense): void {
  const sizes = ({ hidden, blocks }: Architecture) => {
    const mlp = mlpOf(blocks[0]!);
    return `${counted(blocks.length, 'layer')} of width ${hidden}, MLPs of ${mlp?.inner} (${mlp?.activation})`;
  };
  const [own, wanted] = [sizes(architecture), sizes(base.architecture)];
  if (own === wanted) return;
  throw new AmalgamError(
    'ShapeMismatch',
    `${displayName(ref)} has ${own}; the base ${displayName(base.ref)} has ${wanted}.`,
    'Take models of one size.',
  );
}

/** The form computes with all but the MLPs as the base does. @throws AmalgamError `ArchitectureUnsupported` */
function requireAlike(form: MoeForm, { ref, architecture }: Dense, made: Architecture): void {
  const rest = ({ embedding, final, blocks }: Architecture) => [
    { embedding, final },
    ...blocks.map(({ steps }) =>
      steps.map(({ branches, ...step }) => ({
        ...step,
        // of the MLP the norms only
        branches: branches
          .filter(({ name }) => name !== 'shared')
          .map(({ part, in: before, out, scale }) => ({
            part: part.kind === 'attention' && part,
            before,
            out,
            scale,
          })),
      })),
    ),
  ];
  const [dense, mixed] = [rest(architecture), rest(made)];
  const at = dense.findIndex((one, i) => JSON.stringify(one) !== JSON.stringify(mixed[i]));
  const bias = architecture.blocks.some((block) => mlpOf(block)?.output.bias !== undefined);
  if (at < 0 && !bias) return;
  const where = bias
    ? 'its MLPs have biases'
    : at === 0
      ? 'its embedding or head is another'
      : `its layer ${at - 1} attends otherwise`;
  throw new AmalgamError(
    'ArchitectureUnsupported',
    `${displayName(ref)} cannot be ${form.title}: ${where} than that form can say.`,
    'Choose another architecture, or models without this.',
  );
}

/** Everything of the base but its MLPs, by the names of its architecture. */
function outsideTensors({ plan, architecture, tensors }: Dense): TensorPlan[] {
  const mlps = new Set(
    architecture.blocks.flatMap((block) => linearsOf(mlpOf(block)!)).map(({ weight }) => weight),
  );
  const names = new Map([...tensors].map(([name, { name: stored }]) => [stored, name]));
  return plan.tensors.flatMap((tensor) => {
    const name = names.get(tensor.name) ?? tensor.name;
    return mlps.has(name) ? [] : [{ ...tensor, name, role: tensorRole(name, tensor.shape) }];
  });
}

function linearsOf({ projections, output }: Mlp): Linear[] {
  return [...projections, output];
}

/** Experts, shared experts and router of a layer; its gates are those of that index. */
function blockTensors(
  block: Block,
  { experts, sharedExperts, baseModel, seed }: MoeRecipe,
  dense: ReadonlyMap<string, Dense>,
  gates: Gates,
): TensorPlan[] {
  const parts = branchesOf(block).map(({ part }) => part);
  const routed = parts.find((part): part is Experts => part.kind === 'experts')!;
  const shared = parts.find((part): part is Mlp => part.kind === 'mlp');
  const made = (expert: MoeExpert, to: Mlp) => {
    const from = dense.get(canonicalRef(expert.sourceModel))!;
    const stored = linearsOf(mlpOf(from.architecture.blocks[block.index]!)!);
    return linearsOf(to).map(({ weight }, i) => {
      const tensor = from.tensors.get(stored[i]!.weight)!;
      const named = { ...tensor, name: weight, role: tensorRole(weight, tensor.shape) };
      return changed(named, expert, stored[i]!.weight === stored.at(-1)!.weight, seed);
    });
  };
  const base = dense.get(canonicalRef(baseModel))!;
  const norm = [...base.tensors.values()].find(({ role }) => role.layer === block.index)!;
  const rows: Float32Array[] = [];
  gates[block.index] = rows;
  const router = ({ weight, inputs, outputs }: Linear, first: number): TensorPlan => {
    const place = { ...placeOf(norm), key: weight };
    const origin = derivedTensor(place, [outputs, inputs], [], async () => async (begin, end) => {
      const all = new Float32Array(outputs * inputs);
      for (let row = 0; row < outputs; row++) all.set(rows[first + row]!, row * inputs);
      return all.slice(begin, end);
    });
    return {
      name: weight,
      shape: [outputs, inputs],
      elements: outputs * inputs,
      dtype: outputDtype(base.plan.recipe.outDtype, norm.dtype),
      role: tensorRole(weight, [outputs, inputs]),
      models: [{ id: base.ref, view: { origin, onBase: false }, parameters: { scale: 1 } }],
      parameters: {},
      method: 'passthrough',
    };
  };
  return [
    ...experts.flatMap((expert, i) => made(expert, routed.experts[i]!)),
    ...(shared ? sharedExperts.flatMap((expert) => made(expert, shared)) : []),
    router(routed.router.scores, 0),
    ...(shared?.factor ? [router(shared.factor, experts.length)] : []),
  ];
}

function placeOf({ copy, models }: TensorPlan) {
  const { folder, file } = copy ?? models[0]!.view.origin;
  return { folder, file };
}

/** W, or (W + σ·noise)·r where the recipe asks for that; the factor r is for what leaves the MLP. */
function changed(
  tensor: TensorPlan,
  { noiseScale = 0, residualScale = 1, sourceModel }: MoeExpert,
  isLast: boolean,
  seed: number,
): TensorPlan {
  const factor = isLast ? residualScale : 1;
  if (noiseScale === 0 && factor === 1) return tensor;
  if (!isWeightDtype(tensor.dtype)) {
    throw new AmalgamError(
      'PlanHasErrors',
      `${displayName(tensor.name)} is stored as ${tensor.dtype}, which cannot be scaled.`,
      'Choose a dtype in the recipe.',
    );
  }
  const { copy, base: _, ...rest } = tensor;
  const view: TensorView = copy ? { origin: copy, onBase: false } : tensor.models[0]!.view;
  const id = sourceModel;
  const own = { id, view, parameters: { weight: factor } };
  const key = maskKey(seed, 'noise', tensor.name);
  const place = { ...placeOf(tensor), key: `noise of ${tensor.name}` };
  const origin = derivedTensor(
    place,
    tensor.shape,
    [],
    async () => async (begin, end) => Float32Array.from(normals(end - begin, key, begin)),
  );
  const noise = { id, view: { origin, onBase: false }, parameters: { weight: noiseScale * factor } };
  const models = noiseScale === 0 ? [own] : [own, noise];
  return { ...rest, method: 'linear', parameters: { normalize: false }, models };
}

function noteRecipe(recipe: MoeRecipe, dense: ReadonlyMap<string, Dense>, problems: Problems): void {
  const { experts, ignored, baseModel } = recipe;
  for (const key of ignored) {
    problems.warn('KeyIgnored', `${displayName(key)} has no effect in a recipe of experts.`, 'Remove it.');
  }
  if (new Set(experts.map(({ sourceModel }) => canonicalRef(sourceModel))).size === 1 && experts.length > 1) {
    problems.warn(
      'NothingChanged',
      'All experts are the same model, so that the mixture says what that one does.',
      'Use it as the beginning of training, or give the experts different models.',
    );
  }
  const { vocab } = dense.get(canonicalRef(baseModel))!.architecture;
  for (const { ref, architecture } of dense.values()) {
    if (architecture.vocab === vocab) continue;
    problems.warn(
      'VocabularyMismatch',
      `${displayName(ref)} has a vocabulary of ${architecture.vocab}, the base one of ${vocab}: its MLPs were trained on other tokens.`,
      'Take experts of one tokenizer.',
    );
  }
}

function parametersOf(architecture: Architecture): MoeFigures['parameters'] {
  // a norm that two branches share is one tensor
  const count = (of: Architecture) =>
    [...new Map(expectedTensors(of).map(({ name, shape }) => [name, shape])).values()].reduce(
      (sum, shape) => sum + shape.reduce((a, b) => a * b, 1),
      0,
    );
  const chosen = (part: Experts): Experts => ({
    ...part,
    experts: part.experts.slice(0, part.router.chosen),
  });
  const blocks = architecture.blocks.map((block) => ({
    ...block,
    steps: block.steps.map((step) => ({
      ...step,
      branches: step.branches.map((branch) =>
        branch.part.kind === 'experts' ? { ...branch, part: chosen(branch.part) } : branch,
      ),
    })),
  }));
  return { all: count(architecture), active: count({ ...architecture, blocks }) };
}
