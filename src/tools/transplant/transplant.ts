/**
 * A model in the vocabulary of another: the plan of its copy with `tokenizer_source` (rows, config, tokenizer files), in which each
 * tensor with a row a token is then put together anew.
 */
import { AmalgamError } from '../../errors';
import { TOKEN_FIELDS } from '../../formats/chat-template';
import { editJsonObject, type JsonEdit } from '../../formats/json-edit';
import { parseModelConfig } from '../../formats/model-config';
import { copyOf, formatModelRef, parseModelRef, type Recipe } from '../../formats/recipe';
import { isJsonNumber, type JsonObject, type JsonValue } from '../../formats/strict-json';
import type { OpenModels } from '../../host/models';
import type { Checkpoint } from '../../inputs/checkpoint';
import type { Model, ModelTensor } from '../../inputs/model';
import { collectProblems } from '../../inputs/problems';
import type { RowSource } from '../../inputs/tensor-view';
import { type Plan, requireClean, type TensorPlan } from '../../merge/plan/plan';
import { modelOf } from '../../merge/plan/recipe-models';
import { type OutputVocabulary, outputVocabulary } from '../../merge/vocabulary/output-vocabulary';
import { type KnownVocabulary, knownVocabulary, vocabularyOf } from '../../merge/vocabulary/vocabulary';
import { planRecipe } from '../../recipe/recipe-jobs';
import { withoutRecipe } from '../write-plan';
import type { TransplantForm } from './options';
import { type Spelling, sharedRows, spellingOf } from './spelling';

/** A tensor of the output with a row a token. */
export interface TokenTensor {
  planned: TensorPlan;
  /** As the model has it, one row a token. */
  own: RowSource;
  /** What the donor has of the kind: its embedding, or for a head its head where it has one of its own. */
  donor: RowSource;
  isHead: boolean;
}

export interface Transplant {
  /** In the donor's vocabulary; rows of the model's tokens by their letters alone. */
  plan: Plan;
  output: OutputVocabulary;
  model: KnownVocabulary;
  spelling: { model: Spelling; donor: Spelling };
  /** Row of the output → row of the model. */
  shared: ReadonlyMap<number, number>;
  special: number;
  /** Tokens whose row is made, by id. */
  fresh: readonly { token: string; id: number }[];
  /** Empty where both have the same tokens under the same ids. */
  tensors: readonly TokenTensor[];
  donor: string;
}

/** Looks at both models before anything is downloaded. @throws AmalgamError `PlanHasErrors`, `AdapterUnsupported`, `Canceled` */
export async function planTransplant(
  refs: { model: string; donor: string },
  { padToMultipleOf }: TransplantForm,
  models: OpenModels,
): Promise<Transplant> {
  // a folder may be called as a recipe calls the base
  const name = ['base', 'union'].includes(refs.donor) ? DONOR : refs.donor;
  const recipe: Recipe = {
    ...copyOf(refs.model),
    tokenizerSource: name,
    ...(padToMultipleOf > 1 ? { tokenizer: { padToMultipleOf } } : {}),
  };
  const open: OpenModels['open'] = (path) => models.open(path === DONOR ? refs.donor : path);
  const planned = await planRecipe(recipe, { ...models, open });
  requireClean(planned);
  const [model, donor] = await Promise.all([
    openedModel(refs.model, models),
    openedModel(refs.donor, models),
  ]);
  const [own, from] = await Promise.all([vocabularyIn(model), vocabularyIn(donor)]);
  const output = outputVocabulary(recipe, from, [own], collectProblems())!;
  const spelling = { model: await spellingOf(own), donor: await spellingOf(from) };
  const isMapped = ({ copy, models: [first] }: TensorPlan) =>
    (copy ?? first?.view.origin)?.rows !== undefined;
  const mapped = planned.tensors.filter(isMapped);
  const { rows: shared, special } =
    mapped.length > 0
      ? sharedRows(spelling.model, spelling.donor, output.ids)
      : { rows: new Map([...output.ids.values()].map((id) => [id, id])), special: 0 };
  const fresh = [...output.ids].flatMap(([token, id]) => (shared.has(id) ? [] : [{ token, id }]));
  return {
    plan: await withRolesOf(planned, donor.checkpoint, spelling.donor, SAID),
    ...{ output, model: own, spelling, shared, special },
    fresh: fresh.sort((a, b) => a.id - b.id),
    tensors: mapped.map((tensor) => tokenTensor(tensor, model, donor, own.rows)),
    donor: refs.donor,
  };
}

const DONOR = 'the donor';

/** Problems of the copy's plan that do not hold here, since every token gets a row, and special ones their role's id. */
const SAID = ['TokensWithoutEmbedding', 'VocabularyOutput', 'TokensLeftOut', 'SpecialTokenMissing'];

async function openedModel(ref: string, models: OpenModels): Promise<Model> {
  const { model, adapter } = parseModelRef(ref);
  const keys = [model, ...(adapter ? [adapter] : [])].map((repo) => formatModelRef({ model: repo }));
  const opened = await Promise.all(keys.map(async (key) => [key, await models.open(key)] as const));
  return modelOf(ref, new Map(opened), collectProblems());
}

async function vocabularyIn(model: Model): Promise<KnownVocabulary> {
  const known = await knownVocabulary(vocabularyOf(model));
  if (typeof known !== 'string') return known;
  throw new AmalgamError(
    'PlanHasErrors',
    `The tokens of ${model.ref} are not known: ${known}.`,
    'Put its tokenizer.json into its folder, or choose another model.',
  );
}

function tokenTensor(planned: TensorPlan, model: Model, donor: Model, rows: number): TokenTensor {
  const tensor = [...model.tensors.values()].find(({ name }) => name === planned.name)!;
  const head = model.head === undefined ? undefined : model.tensors.get(model.head)?.name;
  const isHead = head !== undefined && [head, head.replace(/weight$/, 'bias')].includes(planned.name);
  const key = isHead && !donor.tied && donor.head !== undefined ? donor.head : donor.embedding!;
  const of = donor.tensors.get(key) ?? donor.tensors.get(donor.embedding!)!;
  return {
    planned,
    own: sourceOf(asRows(tensor, rows), model.ref),
    donor: sourceOf(of, donor.ref),
    isHead,
  };
}

/** BART's bias is one row of all tokens: the same bytes as a column of them. */
function asRows(tensor: ModelTensor, rows: number): ModelTensor {
  const { shape, view } = tensor;
  if (shape[0] !== 1 || shape[1] !== rows || rows === 1) return tensor;
  return { ...tensor, view: { ...view, origin: { ...view.origin, shape: [rows] } } };
}

function sourceOf({ name, view }: ModelTensor, ref: string): RowSource {
  const { origin, lowRank, addend } = view;
  if (addend || lowRank?.magnitude) {
    throw new AmalgamError(
      'AdapterUnsupported',
      `${ref} uses ${addend ? 'lora_bias' : 'DoRA'} on ${name}, whose rows cannot be taken one by one.`,
      'Merge this adapter into its base first (convert), and use the result.',
    );
  }
  return { tensor: origin, ...(lowRank ? { lowRank } : {}) };
}

// Configs of the output with the special tokens that its new tokenizer has.

/**
 * The plan with the donor's ids of special tokens, as its config names them, else its tokenizer; the ends of a text are in the plan
 * already. A role that only the model has a token for is left to nobody.
 *
 * @param said codes of problems that do not hold then
 */
async function withRolesOf(
  plan: Plan,
  donor: Checkpoint,
  spelling: Spelling,
  said: readonly string[],
): Promise<Plan> {
  const ids = new Map<string, number>();
  for (const role of TOKEN_FIELDS.filter((name) => name !== 'eos_token')) {
    const key = `${role}_id`;
    const stated = statedId(donor.config?.raw, key);
    const found = stated ?? spelling.roles.get(role);
    if (found !== undefined) ids.set(key, found);
  }
  const extras = withoutRecipe(plan.extras).map((extra) => {
    const { path, content } = extra;
    if (!('text' in content) || !/^(?:generation_)?config\.json$/.test(path)) return extra;
    return { path, content: { text: withIds(content.text, path, ids) } };
  });
  return { ...plan, extras, problems: plan.problems.filter(({ code }) => !said.includes(code)) };
}

function statedId(raw: JsonObject | undefined, key: string): number | undefined {
  const inner = raw?.get('text_config');
  const value: JsonValue | undefined =
    (inner instanceof Map ? inner.get(key) : undefined) ?? raw?.get(key) ?? undefined;
  return isJsonNumber(value) ? Number(value.text) : undefined;
}

/** Every id that the config names already, at the top or in `text_config`; a generation config's, too. */
function withIds(text: string, fileName: string, ids: ReadonlyMap<string, number>): string {
  const { raw } = parseModelConfig(text, fileName);
  const own = (object: JsonObject) => new Map<string, JsonEdit>([...ids].filter(([key]) => object.has(key)));
  const inner = raw.get('text_config');
  const nested = inner instanceof Map ? own(inner) : new Map<string, JsonEdit>();
  const edits = own(raw);
  if (nested.size > 0) edits.set('text_config', (part) => editJsonObject(part, nested));
  return editJsonObject(text, edits);
}
