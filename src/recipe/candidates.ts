/** The merges that are tried to find the best one, which of them wins, and what its losses say. Pure. */
import { TOKENS_PER_INPUT } from '../calibration/calibration';
import { AmalgamError } from '../errors';
import type { Recipe, RecipeParameters } from '../formats/recipe';
import { formatRecipe } from '../formats/recipe-format';
import type { MergeMethod } from '../merge/method';
import { methodById, methods } from '../merge/methods';
import { textSize } from '../merge/methods/importance-parameters';
import type { Plan } from '../merge/plan/plan';
import { type BestRow, type BestText, frontOf, type TextPart } from '../reports/find-best';
import { meanLoss, pairedDifference, verdict } from '../reports/paired-error';

export interface Candidate extends Pick<BestRow, 'id' | 'kind' | 'label'> {
  recipe: Recipe;
  /** λ is searched for. */
  tuned: boolean;
  /** The models are run over text first: minutes, where others take seconds. */
  reads: boolean;
  /** Its changes are trimmed: on the sets of docs/importance.md never the best, and every λ is another selection. */
  trims: boolean;
}

/** Parameters of a recipe for its calibration text. */
const READING = ['calibration', 'calibration_windows', 'calibration_window'] as const;

function readingIn(parameters: RecipeParameters): RecipeParameters {
  return Object.fromEntries(
    READING.flatMap((name) => (parameters[name] === undefined ? [] : [[name, parameters[name]]])),
  );
}

/** How much is read belongs to the search, not to a recipe that reads nothing. */
function withoutReading(recipe: Recipe): Recipe {
  const named = Object.keys(readingIn(recipe.parameters));
  const rest = Object.entries(recipe.parameters).filter(([name]) => !named.includes(name));
  return { ...recipe, parameters: Object.fromEntries(rest) };
}

const contributorsOf = ({ models = [], baseModel }: Recipe) =>
  models.filter(({ model }) => model !== baseModel);

/** The merge by a method with its recommended settings and models that count alike. */
function by(recipe: Recipe, method: MergeMethod, parameters: RecipeParameters = {}): Recipe {
  const reads = method.compute.kind === 'solved';
  const { weight, density } = method.modelParameters;
  const advised = density?.kind === 'number' ? density.recommended : undefined;
  const { baseModel, ...rest } = recipe;
  return {
    ...rest,
    ...(method.base === 'none' || baseModel === undefined ? {} : { baseModel }),
    mergeMethod: method.id,
    parameters: {
      ...(reads && readingIn(recipe.parameters)),
      // halfway where nothing else is said
      ...(method.parameters.t?.kind === 'number' && method.parameters.t.default === undefined && { t: 0.5 }),
      ...parameters,
    },
    models: contributorsOf(recipe).map(({ model, parameters: own }) => ({
      model,
      parameters: {
        ...(reads && readingIn(own)),
        ...(weight && weight.default === undefined && { weight: 1 }),
        ...(advised !== undefined && { density: advised }),
      },
    })),
  };
}

/** Methods that were nowhere near the best on the sets of docs/importance.md, as those on singular directions, which also take long. */
const NEVER_BEST = ['passthrough', 'consensus', 'localize_and_stitch', 'pcb'];
const isNeverBest = ({ id, compute }: MergeMethod) => NEVER_BEST.includes(id) || compute.kind === 'spectral';

/** Cheap and often good ones first: of equals the first is taken. */
const FIRST = ['linear', 'task_arithmetic', 'ram', 'multislerp', 'karcher', 'breadcrumbs'];
const GRAM = [
  { id: 'gram', label: 'Gram merge', parameters: {} },
  // a share of the sum of the changes, of which text that models wrote asks for too little (docs/importance.md)
  { id: 'gram stream', label: 'Gram merge · stream matched', parameters: { match: 'stream', sum: 0.1 } },
  { id: 'gram both', label: 'Gram merge · inputs and stream', parameters: { match: 'both' } },
];
const CHANGES = { id: 'gram changes', label: 'Gram merge of the changes', parameters: { match: 'changes' } };

/**
 * Every merge that fits: the recipe as it is given, methods that read no text, Gram merges; each in the order of its cost.
 * @throws AmalgamError `Usage` for a recipe of slices or stages, or without a base
 */
export function candidatesOf(recipe: Recipe): Candidate[] {
  const count = contributorsOf(recipe).length;
  if (count === 0 || recipe.stages || recipe.baseModel === undefined) {
    throw new AmalgamError(
      'Usage',
      'The best merge is found for whole models on one base.',
      'Give a recipe with a base_model that lists the others under “models:”.',
    );
  }
  const place = ({ id }: MergeMethod) => (FIRST.includes(id) ? FIRST.indexOf(id) : FIRST.length);
  const fitting = methods
    .filter((method) => {
      const { min, max } = method.models;
      return !isNeverBest(method) && method.compute.kind !== 'solved' && min <= count && count <= max;
    })
    .sort((a, b) => place(a) - place(b))
    .map((method): Candidate => {
      const made = by(recipe, method);
      const density = made.models?.[0]?.parameters.density;
      const [title] = method.title.split(' — ') as [string];
      return {
        ...{ id: method.id, kind: 'method', recipe: made, reads: false },
        tuned: method.parameters.lambda !== undefined,
        trims: density !== undefined && !FIRST.includes(method.id),
        label: typeof density === 'number' ? `${title} ${density.toFixed(2)}` : title,
      };
    });
  const gram = (kind: 'method' | 'gram') => (of: typeof CHANGES | (typeof GRAM)[number]) => ({
    ...{ id: of.id, label: of.label, kind, tuned: true, reads: kind === 'gram', trims: false },
    recipe: by(recipe, methodById.get('gram')!, of.parameters),
  });
  const others = [...fitting, gram('method')(CHANGES), ...GRAM.map(gram('gram'))];
  const given = givenOf(recipe);
  const known = given && others.find((of) => sameButLambda(of.recipe, given.recipe));
  if (given && (!known || !given.tuned)) return [given, ...others];
  return others;
}

/** The recipe itself, where it is a merge. */
function givenOf(recipe: Recipe): Candidate | undefined {
  const method = methodById.get(recipe.mergeMethod);
  if (!method || method.id === 'passthrough') return undefined;
  const [title] = method.title.split(' — ') as [string];
  const { selector, match, lambda } = recipe.parameters;
  const reads = selector === 'importance' || (method.compute.kind === 'solved' && match !== 'changes');
  return {
    ...{ id: 'given', kind: 'given', label: `${title} as given` },
    recipe: reads ? recipe : withoutReading(recipe),
    ...{ tuned: lambda === 'auto', reads, trims: false },
  };
}

function sameButLambda(a: Recipe, b: Recipe): boolean {
  const [one, other] = [a, b].map((of) => formatRecipe(withLambda(of, 1)));
  return one === other;
}

/** The recipe with a λ. */
export function withLambda(recipe: Recipe, lambda: number): Recipe {
  return { ...recipe, parameters: { ...recipe.parameters, lambda } };
}

/** The recipe whose plan says what the contributors read. */
export function readingRecipe(recipe: Recipe): Recipe {
  const reading = by(recipe, methodById.get('gram')!);
  const arithmetic = by(recipe, methodById.get('task_arithmetic')!);
  return {
    ...arithmetic,
    parameters: { ...reading.parameters, lambda: 'auto' },
    models: arithmetic.models!.map((entry, i) => ({
      ...entry,
      parameters: { ...reading.models![i]!.parameters, ...entry.parameters },
    })),
  };
}

/** Elements of the base times tokens that every contributor reads for Gram merges, in a second of the budget: 4 224 of the sample in 20 s. */
const READ_A_SECOND = 2.5e8;
/** Longest text that is read in windows of half the length: every token of one is a step of generating. */
const SHORT = 2 ** 13;

/** The recipe with a size for what its models read, what is advised or more as far as there is time, unless it has one. */
export function withReading(recipe: Recipe, { tensors }: Plan, budget: number): Recipe {
  const { calibration_windows, calibration_window } = recipe.parameters;
  if (calibration_windows !== undefined || calibration_window !== undefined) return recipe;
  const elements = tensors.reduce((sum, of) => sum + of.elements, 0);
  const inBlocks = tensors.filter(({ role }) => role.layer !== null);
  const widest = Math.max(1, ...inBlocks.map(({ shape }) => Math.max(...shape)));
  const usual = textSize({});
  const wanted = Math.max(TOKENS_PER_INPUT * widest, (budget * READ_A_SECOND) / elements);
  const tokens = Math.min(usual.windows * usual.length, wanted);
  const length = tokens > SHORT ? usual.length : usual.length / 2;
  const reading = { calibration_windows: Math.ceil(tokens / length), calibration_window: length };
  return { ...recipe, parameters: { ...recipe.parameters, ...reading } };
}

/** Differences that nobody notices, in nats per token: a twentieth of a percent of perplexity. */
export const NEGLIGIBLE = 0.0005;

export const lossOf = (row: BestRow, part: TextPart) => meanLoss(row.blocks[part] ?? []).mean;

/** The row with the least loss on a part of the text. */
export function leastOf(rows: Iterable<BestRow>, part: TextPart): { row: BestRow; loss: number } | undefined {
  const measured = [...rows].flatMap((row) => {
    const loss = lossOf(row, part);
    return Number.isNaN(loss) ? [] : [{ row, loss }];
  });
  return measured.sort((a, b) => a.loss - b.loss)[0];
}

const blocksOf = ({ blocks: { choosing } }: BestRow) =>
  (choosing ?? []).reduce((n, text) => n + text.length, 0);

/** Rows that were compared on the most text. */
function readMost(rows: readonly BestRow[]): BestRow[] {
  const most = Math.max(...rows.map(blocksOf));
  return rows.filter((row) => most > 0 && blocksOf(row) === most);
}

/** Rows that may be better than any on the choosing text, of which all have read the same; the least loss first. */
export function rivalsOf(rows: readonly BestRow[]): BestRow[] {
  const ordered = rows
    .filter((row) => blocksOf(row) > 0)
    .sort((a, b) => lossOf(a, 'choosing') - lossOf(b, 'choosing'));
  const least = ordered[0]?.blocks.choosing;
  return ordered.filter(({ blocks }) => verdict(pairedDifference(blocks.choosing!, least!)) !== 'higher');
}

/**
 * The winner on the choosing text, among the rows that were compared on the most of it. Of the rows within a standard error and a hair of the least loss there the simplest merge
 * wins: the recipe as given, then as they were tried; models as they are only where they are better than every merge.
 */
export function winnerOf(rows: readonly BestRow[]): BestRow | undefined {
  const measured = readMost(rows);
  const order = measured.sort((a, b) => lossOf(a, 'choosing') - lossOf(b, 'choosing'));
  const [least] = order;
  if (!least) return undefined;
  const close = order.filter((row) => {
    const apart = pairedDifference(row.blocks.choosing!, least.blocks.choosing!);
    return row === least || (apart !== null && apart.mean <= Math.min(apart.stderr ?? 0, NEGLIGIBLE));
  });
  const whole = (row: BestRow) => Number(row.kind === 'base' || row.kind === 'contributor');
  return close.reduce((a, b) =>
    whole(b) < whole(a) || (whole(b) === whole(a) && rows.indexOf(b) < rows.indexOf(a)) ? b : a,
  );
}

/**
 * Rows that figures are reported of: models, merges beside, the winner and the best merge, and others that may be as good or
 * are on the front of two texts, the least loss first. @param all every merge
 */
export function reportedOf(rows: readonly BestRow[], won: BestRow, all: boolean) {
  const measured = rows.filter((row) => blocksOf(row) > 0);
  const isModel = ({ kind }: BestRow) => kind === 'base' || kind === 'contributor';
  const merges = measured.filter((row) => !isModel(row));
  const best = leastOf(readMost(merges.filter(({ kind }) => kind !== 'also')), 'choosing')?.row;
  const first = measured.filter((row) => isModel(row) || [won, best].includes(row) || row.kind === 'also');
  const near = all ? merges : [...rivalsOf(readMost(merges)), ...frontOf(merges)];
  return { first, others: [...new Set(near)].filter((row) => !first.includes(row)) };
}

/** Texts with the tokens of their parts, as far as rows were measured on them. @param known of earlier rows */
export function describedBy(
  rows: readonly BestRow[],
  texts: readonly Pick<BestText, 'name' | 'kind'>[],
  known: readonly BestText[],
): BestText[] {
  return texts.map((text, t) => {
    const tokens = (part: TextPart) => {
      const blocks = rows.find((row) => row.blocks[part])?.blocks[part]?.[t] ?? [];
      return known[t]?.tokens[part] || blocks.reduce((sum, block) => sum + block.tokens, 0);
    };
    const [tuning, choosing, reporting] = [tokens('tuning'), tokens('choosing'), tokens('reporting')];
    return { ...text, tokens: { tuning, choosing, reporting } };
  });
}

/** Mean losses of a row text by text on the reporting part. */
const each = (row: BestRow | undefined) => (row?.blocks.reporting ?? []).map((text) => meanLoss([text]).mean);

/**
 * Share of each contributor's gain over the base, on its own text, that a merge keeps, and the most of a contributor's gain
 * that another has there too. Where that is large the contributors learned some of the same, and text they generated is
 * little evidence of how far to take them. The texts are the contributors', in their order.
 */
export function sharesOf(
  rows: readonly BestRow[],
  merge: BestRow,
): { kept: (number | null)[]; overlap: number | null } {
  const base = each(rows.find(({ kind }) => kind === 'base'));
  const own = rows.filter(({ kind }) => kind === 'contributor').map(each);
  const merged = each(merge);
  const gains = own.map((losses, i) => base[i]! - losses[i]!);
  const kept = merged.map((loss, i) => (gains[i]! > 0 ? (base[i]! - loss) / gains[i]! : null));
  const shared = gains.flatMap((gain, i) =>
    gain > 0 ? own.flatMap((losses, j) => (j === i ? [] : [(base[i]! - losses[i]!) / gain])) : [],
  );
  return { kept, overlap: shared.length === 0 ? null : Math.max(...shared) };
}
