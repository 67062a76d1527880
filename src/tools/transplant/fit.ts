/** How the rows of new tokens are made: by the donor's rows of them and of shared tokens, or by the model's own pieces. */

import type { Backend } from '../../backend/backend';
import { createQueue, type Queue } from '../../forward/queue';
import type { ReadTensor } from '../../inputs/stored-tensor';
import type { RowSource } from '../../inputs/tensor-view';
import { nextTask } from '../../platform';
import { throwIfCanceled } from '../../sources/cancellation';
import { eachBatch, type NewRows } from './new-rows';
import { isFitted, kOf, type TransplantForm } from './options';
import { openProducts, type Products, type Rows } from './products';
import { type Combination, type Making, near, normOf, pursue, rowOf } from './pursuit';
import type { TokenTensor, Transplant } from './transplant';

/** Rows of new tokens that are fitted together. */
const BATCH_ROWS = 64;
/** Bytes of their products with a dictionary, at most. */
const BATCH_BYTES = 64 * 2 ** 20;

export interface FitTools {
  queue: Queue;
  read: ReadTensor;
  signal: AbortSignal;
  onBytes(bytes: number): void;
}

/** Shared tokens that rows are made of: the first ones of the donor, as row of the donor and of the model. */
export function landmarksOf({ shared }: Transplant, { landmarks }: TransplantForm): [number, number][] {
  return [...shared].sort(([a], [b]) => a - b).slice(0, landmarks);
}

/** Multiply-adds of making rows, once for each matrix of the donor: products of what is left with the dictionary. */
export function fitWork(form: TransplantForm, fresh: number, landmarks: number, widths: readonly number[]) {
  const steps = form.way === 'omp' ? Math.min(kOf(form), landmarks) : 1;
  return widths.reduce((sum, width) => sum + fresh * steps * landmarks * width, 0);
}

/** Bytes that fitting takes at its peak: the dictionary here and on the device, batches, and what was chosen. */
export function fitBytes(form: TransplantForm, fresh: number, landmarks: number, width: number): number {
  if (!isFitted(form)) return 0;
  return 8 * landmarks * width + 3 * BATCH_BYTES + 16 * fresh * kOf(form);
}

interface Fitted {
  /** Of each new token, in the order of their ids: rows of the dictionary. */
  combinations: Combination[];
}

/**
 * The donor's rows of new tokens as sums of its rows of shared ones.
 * @param source of the donor
 */
export async function fitRows(
  source: RowSource,
  transplant: Transplant,
  form: TransplantForm,
  { queue, read, signal, onBytes }: FitTools,
): Promise<Fitted> {
  const width = source.tensor.shape[1] ?? 1;
  const landmarks = landmarksOf(transplant, form).map(([row]) => row);
  const k = Math.min(kOf(form), landmarks.length);
  const combinations: Combination[] = [];
  if (k === 0) return { combinations: transplant.fresh.map(() => NOTHING) };
  const dictionary = await wholeRows(source, landmarks, width, read);
  const products = openProducts(queue, dictionary);
  const start = form.way === 'omp' ? pursue : near;
  try {
    const step = Math.max(1, Math.min(BATCH_ROWS, Math.floor(BATCH_BYTES / (4 * landmarks.length))));
    const ids = transplant.fresh.map(({ id }) => id);
    await eachBatch(source, ids, width, read, async (values) => {
      const all = { values, count: values.length / width, width };
      for (let first = 0; first < all.count; first += step) {
        const count = Math.min(step, all.count - first);
        const makings = Array.from({ length: count }, (_, i) => start(rowOf(all, first + i), dictionary, k));
        await queue.heeding(signal, () => makeTogether(makings, products, width));
        combinations.push(...makings.map(({ made }) => made));
        onBytes(4 * count * width);
        await nextTask();
        throwIfCanceled(signal);
      }
    });
    return { combinations };
  } finally {
    products.close();
  }
}

const NOTHING: Combination = { rows: [], weights: [], left: 1 };

/** Makes rows step by step, their products on the engine together. */
export async function makeTogether(
  makings: readonly Making[],
  products: Products,
  width: number,
): Promise<void> {
  for (;;) {
    const left = makings.flatMap((making) => {
      const { asks } = making;
      return asks ? [{ making, asks }] : [];
    });
    if (left.length === 0) return;
    const values = new Float32Array(left.length * width);
    for (const [i, { asks }] of left.entries()) values.set(asks, i * width);
    const found = await products.with({ values, count: left.length, width });
    const each = found.length / left.length;
    for (const [i, { making }] of left.entries()) making.take(found.subarray(i * each, (i + 1) * each));
  }
}

async function wholeRows(
  source: RowSource,
  rows: readonly number[],
  width: number,
  read: ReadTensor,
): Promise<Rows> {
  const values = new Float32Array(rows.length * width);
  await eachBatch(source, rows, width, read, (some, first) => values.set(some, first * width));
  return { values, count: rows.length, width };
}

/** Sums of the model's rows out of those of the donor's. */
export function fittedParts(
  { combinations }: Fitted,
  transplant: Transplant,
  form: TransplantForm,
): NewRows['parts'] {
  const rowOf = landmarksOf(transplant, form).map(([, row]) => row);
  return (token) => {
    const { rows, weights } = combinations[token]!;
    return { rows: rows.map((row) => rowOf[row]!), weights };
  };
}

/** Sums of pieces, where there are any; the last piece ends a token in the embedding, the first begins it in the head. */
export function pieceParts(
  pieces: readonly (readonly number[] | undefined)[],
  { weighting }: TransplantForm,
  isHead: boolean,
): NewRows['parts'] {
  return (token) => {
    const rows = pieces[token];
    if (!rows) return undefined;
    const end = isHead ? 0 : rows.length - 1;
    const factors = rows.map((_, i) => {
      if (weighting === 'end') return i === end ? 1 : 0;
      return weighting === 'weighted' ? (isHead ? rows.length - i : i + 1) : 1;
    });
    const sum = weighting === 'sum' ? 1 : factors.reduce<number>((a, b) => a + b, 0);
    return { rows, weights: factors.map((factor) => factor / sum) };
  };
}

/** Norms that new rows of a tensor are brought to, as the form asks. */
export async function normsOf(
  { own, donor }: TokenTensor,
  transplant: Transplant,
  { magnitude }: TransplantForm,
  read: ReadTensor,
): Promise<NewRows['norm']> {
  if (magnitude === 'made' || own.tensor.shape.length < 2) return () => 0;
  const shared = [...transplant.shared];
  const mean = (values: readonly number[]) => values.reduce((a, b) => a + b, 0) / Math.max(1, values.length);
  const wanted = mean(
    await rowNorms(
      own,
      shared.map(([, row]) => row),
      read,
    ),
  );
  if (magnitude === 'shared') return () => wanted;
  const there = mean(
    await rowNorms(
      donor,
      shared.map(([row]) => row),
      read,
    ),
  );
  const norms = await rowNorms(
    donor,
    transplant.fresh.map(({ id }) => id),
    read,
  );
  return (token) => (norms[token]! * wanted) / (there || 1);
}

async function rowNorms(source: RowSource, rows: readonly number[], read: ReadTensor): Promise<number[]> {
  const width = source.tensor.shape[1] ?? 1;
  const norms: number[] = [];
  await eachBatch(source, rows, width, read, (values) => {
    for (let at = 0; at < values.length; at += width) norms.push(normOf(values.subarray(at, at + width)));
  });
  return norms;
}

// How long making rows takes here, by a moment's work.

/** Of the trial: rows of the dictionary, their width, rows that are made, and rows that each is made of. */
const TRIAL = { count: 2048, width: 512, rows: 64, k: 8 };

/** Seconds of so many multiply-adds. @throws what the engine throws, `Canceled` */
export async function secondsFor(
  multiplyAdds: number,
  engine: Backend,
  signal: AbortSignal,
): Promise<number> {
  const { count, width, rows, k } = TRIAL;
  const values = Float32Array.from({ length: count * width }, (_, i) => Math.sin(i * i + i));
  const dictionary = { values, count, width };
  const x = { ...dictionary, values: values.map((value, i) => value + Math.cos(i)) };
  const queue = createQueue(engine);
  const products = openProducts(queue, dictionary);
  try {
    const trial = async () => {
      const makings = Array.from({ length: rows }, (_, i) => pursue(rowOf(x, i), dictionary, k));
      const begun = performance.now();
      await queue.heeding(signal, () => makeTogether(makings, products, width));
      return (performance.now() - begun) / 1000;
    };
    await trial();
    return (multiplyAdds * (await trial())) / (rows * k * count * width);
  } finally {
    products.close();
  }
}
