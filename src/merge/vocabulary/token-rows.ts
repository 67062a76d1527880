/**
 * Embedding, head and head bias of every model brought to the output's vocabulary, by the rules of mergekit 0.1.4
 * (`tokenizer/embed.py`): a token's row follows the token; a model that lacks a token takes the row of the one model
 * that has it, else the base's, else the mean of those that have it; a token nobody has is zero; rows that fill up the
 * tensor are the mean of the model's own.
 */

import { isWeightDtype } from '../../formats/dtype';
import { counted } from '../../formats/quantity';
import type { RecipeToken } from '../../formats/recipe';
import { canonicalRef } from '../../formats/recipe';
import type { Model, ModelTensor } from '../../inputs/model';
import { nameSome, type Problems } from '../../inputs/problems';
import { MEAN_ROW, mappedTensor, rowSums, SUM_ROW, ZERO_ROW } from '../../inputs/row-map';
import type { LowRank, RowMap, RowSource, TensorRef } from '../../inputs/tensor-view';
import { hasTokenRows } from '../../models/tensor-role';
import type { OutputVocabulary } from './output-vocabulary';
import type { KnownVocabulary } from './vocabulary';

/** A model that is merged, with its tokens. */
export interface TokenModel {
  model: Model;
  vocabulary: KnownVocabulary;
}

/** Source of a token's row in a model that lacks it. */
type Fill = 'zero' | readonly { model: number; row: number }[];

/** Tokens by how their rows are filled, for the problems of the plan. */
interface TokenFates {
  /** Tokens that no model has. */
  zero: string[];
  /** Tokens whose rows are the mean of several models'. */
  averaged: number;
}

/**
 * Brings the tensors of all models to the output's vocabulary, in place. A model that has it already stays as it is.
 *
 * @param base index of the base among the models, where it takes part
 */
export function mapTokenRows(
  models: readonly TokenModel[],
  base: number | undefined,
  output: OutputVocabulary,
  chosen: readonly RecipeToken[],
  problems: Problems,
): TokenFates {
  const fates: TokenFates = { zero: [], averaged: 0 };
  const choices = chosenRows(models, output, chosen, problems);
  const fills = new Map<number, Fill>();
  for (const [token, id] of output.ids) {
    const fill = choices.get(token)?.fill ?? defaultFill(token, models, base);
    if (fill === undefined) continue;
    fills.set(id, fill);
    if (fill === 'zero' && !choices.has(token)) fates.zero.push(token);
    if (fill.length > 1 && fill !== 'zero') fates.averaged++;
  }
  const forced = new Set([...choices].filter(([, { force }]) => force).map(([token]) => token));
  const originals = models.map(
    ({ model }) => new Map([...model.tensors].map(([name, tensor]) => [name, asColumn(name, tensor)])),
  );
  const plans = models.map(({ vocabulary }) => ownRows(vocabulary, output, forced));
  for (const [index, { model, vocabulary }] of models.entries()) {
    const own = plans[index]!;
    if (vocabulary.rows === output.rows && own.every((row, i) => row === i)) continue;
    for (const name of vocabularyTensors(model)) {
      const tensor = originals[index]!.get(name)!;
      if (!isMappable(model, name, tensor, vocabulary, problems)) continue;
      const sourceOf = (from: number) => originals[from]!.get(name)?.view;
      const rows = tensor.shape[0]!;
      const mapped = mapTensor(tensor, index, within(own, rows), fills, output, sourceOf);
      const isLine = tensor !== model.tensors.get(name);
      model.tensors.set(name, isLine ? { ...mapped, shape: [1, output.rows] } : mapped);
    }
  }
  return fates;
}

/** Names of the tensors that have a row per token, where the model has them. */
function vocabularyTensors({ embedding, head, tensors }: Model): string[] {
  const others = [...tensors.keys()].filter(hasTokenRows);
  return [...new Set([embedding, head, head?.replace(/weight$/, 'bias'), ...others])].filter(
    (name) => name !== undefined && tensors.has(name),
  ) as string[];
}

/** Gemma 3n may have fewer per-layer rows than tokens; a token beyond them has row 0 (modeling_gemma3n.py). */
const PER_LAYER = /(?:^|\.)embed_tokens_per_layer\.weight$/;

/** BART's bias is one row of all tokens: the same bytes as a column of them. */
function asColumn(name: string, tensor: ModelTensor): ModelTensor {
  const [first, count = 0, ...more] = tensor.shape;
  if (name !== 'final_logits_bias' || first !== 1 || more.length > 0) return tensor;
  const { view } = tensor;
  return { ...tensor, shape: [count], view: { ...view, origin: { ...view.origin, shape: [count] } } };
}

function within(own: Int32Array<ArrayBuffer>, rows: number): Int32Array<ArrayBuffer> {
  return own.map((row) => (row < rows ? row : 0));
}

function isMappable(
  { ref, adapter }: Model,
  name: string,
  { shape, dtype, view }: ModelTensor,
  { rows }: KnownVocabulary,
  problems: Problems,
): boolean {
  if (shape[0] !== rows && !(PER_LAYER.test(name) && shape[0]! < rows)) {
    problems.error(
      'VocabularyMismatch',
      `${name} of ${ref} has ${counted(shape[0]!, 'row')}, but its embedding has ${rows}.`,
      `Bring the two to one size first (resize_token_embeddings), or leave ${ref} out.`,
      [name],
    );
    return false;
  }
  if (!isWeightDtype(dtype) || !isWeightDtype(view.origin.dtype)) {
    problems.error(
      'DtypeUnsupported',
      `${ref} stores ${name} as ${dtype}, whose rows cannot be brought to another vocabulary.`,
      'Use a copy of the model in F32, F16 or BF16.',
      [name],
    );
    return false;
  }
  if (view.lowRank?.magnitude || view.addend) {
    problems.error(
      'AdapterUnsupported',
      `${adapter?.path ?? ref} uses ${view.addend ? 'lora_bias' : 'DoRA'} on ${name}, which cannot be brought to another vocabulary.`,
      'Merge this adapter into its base first (passthrough of this one model), and use the result.',
      [name],
    );
    return false;
  }
  return true;
}

/** Row of the model for every output row; −1 where it has none or the recipe forces another. */
function ownRows(
  { ids }: KnownVocabulary,
  output: OutputVocabulary,
  forced: ReadonlySet<string>,
): Int32Array<ArrayBuffer> {
  const own = new Int32Array(output.rows).fill(-1);
  for (const [token, id] of output.ids) if (!forced.has(token)) own[id] = ids.get(token) ?? -1;
  return own;
}

/** Undefined where every model has the token. */
function defaultFill(
  token: string,
  models: readonly TokenModel[],
  base: number | undefined,
): Fill | undefined {
  const rows = models.map(({ vocabulary }) => vocabulary.ids.get(token));
  const owners = rows.flatMap((row, model) => (row === undefined ? [] : [{ model, row }]));
  if (owners.length === models.length) return undefined;
  if (owners.length === 0) return 'zero';
  const baseRow = base === undefined ? undefined : rows[base];
  if (owners.length > 1 && baseRow !== undefined) return [{ model: base!, row: baseRow }];
  return owners;
}

/** Rows of single tokens as the recipe sets them. */
function chosenRows(
  models: readonly TokenModel[],
  output: OutputVocabulary,
  chosen: readonly RecipeToken[],
  problems: Problems,
): Map<string, { fill: Fill; force: boolean }> {
  const choices = new Map<string, { fill: Fill; force: boolean }>();
  for (const { token, source, force = false } of chosen) {
    const refuse = (message: string, remedy: string) => problems.error('TokenSourceInvalid', message, remedy);
    if (!output.ids.has(token)) continue;
    if (source.kind === 'zero') {
      choices.set(token, { fill: 'zero', force });
      continue;
    }
    const model = models.findIndex(({ model: { ref } }) => ref === canonicalRef(source.model));
    if (model < 0) {
      refuse(
        `The embedding of “${token}” is to come from ${source.model}, which is not among the models that are merged.`,
        `Name one of ${nameSome(models.map(({ model: { ref } }) => ref))}.`,
      );
      continue;
    }
    const { ids, rows, ref } = models[model]!.vocabulary;
    const wanted = source.kind === 'model' ? token : 'token' in source ? source.token : undefined;
    const row = wanted === undefined ? (source as { tokenId: number }).tokenId : ids.get(wanted);
    if (row === undefined || row >= rows) {
      refuse(
        wanted === undefined
          ? `${ref} has no row ${row}: its embedding has ${rows}.`
          : `${ref} has no embedding of “${wanted}”.`,
        `Choose a token that ${ref} has as source of “${token}”, or kind: zero.`,
      );
      continue;
    }
    choices.set(token, { fill: [{ model, row }], force });
  }
  return choices;
}

/** One tensor of one model in the output's vocabulary. Its own update stays an update, with its rows moved alike. */
function mapTensor(
  { view, shape, ...rest }: ModelTensor,
  index: number,
  own: Int32Array,
  fills: ReadonlyMap<number, Fill>,
  output: OutputVocabulary,
  viewOf: (model: number) => ModelTensor['view'] | undefined,
): ModelTensor {
  const sources: RowSource[] = [{ tensor: view.origin }];
  const indices = new Map<number, number>();
  const sourceOf = (model: number): number => {
    const known = indices.get(model);
    if (known !== undefined) return known;
    const from = viewOf(model) ?? view;
    sources.push({ tensor: from.origin, ...(from.lowRank ? { lowRank: from.lowRank } : {}) });
    indices.set(model, sources.length - 1);
    return sources.length - 1;
  };
  const source = new Int32Array(output.rows).fill(MEAN_ROW);
  const row = new Int32Array(output.rows);
  const parts = new Map<number, { source: number; row: number; weight: number }[]>();
  for (const id of output.ids.values()) {
    const fill = fills.get(id);
    const ownRow = own[id]!;
    const first = fill === 'zero' ? undefined : fill?.[0];
    if (ownRow >= 0 || (fill?.length === 1 && first?.model === index)) {
      source[id] = 0;
      row[id] = ownRow >= 0 ? ownRow : first!.row;
    } else if (!first || fill === 'zero') source[id] = ZERO_ROW;
    else if (fill!.length === 1) {
      source[id] = sourceOf(first.model);
      row[id] = first.row;
    } else {
      source[id] = SUM_ROW;
      const weight = 1 / fill!.length;
      parts.set(
        id,
        (fill as Exclude<Fill, 'zero'>).map((part) => ({
          source: sourceOf(part.model),
          row: part.row,
          weight,
        })),
      );
    }
  }
  const sums = parts.size > 0 ? { sums: rowSums(output.rows, parts) } : {};
  const map: RowMap = { axis: 'rows', sources, source, row, ...sums };
  return {
    ...rest,
    shape: [output.rows, ...shape.slice(1)],
    view: {
      origin: mappedTensor(view.origin, map),
      ...(view.lowRank ? { lowRank: mapUpdate(view.lowRank, map) } : {}),
    },
  };
}

/** The factor with a row (or column) per token; rows that are not the model's own have no update. */
function mapUpdate(update: LowRank, { source, row }: RowMap): LowRank {
  const own = source.map((s) => (s === 0 || s === MEAN_ROW ? s : ZERO_ROW));
  const mapped = (tensor: TensorRef, axis: RowMap['axis']) =>
    mappedTensor(tensor, { axis, sources: [{ tensor }], source: own, row });
  return update.layout === 'linear'
    ? { ...update, b: mapped(update.b, 'rows') }
    : { ...update, a: mapped(update.a, 'columns') };
}
