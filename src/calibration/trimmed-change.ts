/** Trimming one change by importance: its mask, and values that make up for what went. */

import type { Backend, BackendBuffer } from '../backend/backend';
import { maskRowWords } from '../backend/kernels/select';
import { densityOf } from '../merge/tensor/delta-selectors';
import { compensate } from './compensation';
import type { FactorResult } from './factor';
import type { Gram } from './gram';
import { keepMask, type ScoreScope } from './keep-masks';
import { columnScores, type ScoreKind } from './scores';

export interface TrimSettings {
  density: number;
  score: ScoreKind;
  scope: ScoreScope;
  compensation: 'cg' | 'off';
}

interface Trimmed {
  /** One bit per entry, rows filled up to 32 bits. The caller frees it. */
  mask: BackendBuffer;
  maskBytes: number;
  /** The kept entries that make up for the others; absent without compensation. The caller frees it. */
  tau?: BackendBuffer;
  factoring: FactorResult;
}

/** Trims τ [rows, cols], which stays as it is. @throws what `Backend.read` throws */
export async function trim(
  engine: Backend,
  tau: BackendBuffer,
  rows: number,
  cols: number,
  gram: Gram,
  { density, score, scope, compensation }: TrimSettings,
): Promise<Trimmed> {
  const { scale, factoring } = await columnScores(engine, gram, score);
  const mask = await keepMask(engine, tau, rows, cols, scale, density, scope);
  engine.free(scale);
  const trimmed = { mask, maskBytes: rows * maskRowWords(cols) * 4, factoring };
  if (compensation === 'off') return trimmed;
  return { ...trimmed, tau: await compensate(engine, tau, mask, rows, cols, gram) };
}

/** What a person should know of factorings, in sentences; nothing where all went as planned. */
export function factorNotes(
  where: string,
  { gram, facts: results }: { gram: Gram; facts: readonly FactorResult[] },
): string[] {
  const notes: string[] = [];
  const { form, width } = gram;
  if (form.kind === 'blocks') {
    const blocks = Math.ceil(width / form.width);
    notes.push(
      `${where}: the products of ${width} inputs do not fit; ${blocks} blocks of ${form.width} were used.`,
    );
  }
  for (const { damping, retries, fellBackToDiagonal } of results) {
    if (fellBackToDiagonal) notes.push(`${where}: could not be factored; the diagonal was used instead.`);
    else if (retries > 0) notes.push(`${where}: needed a damping of ${damping}.`);
  }
  const dead = Math.max(0, ...results.map((f) => f.dead));
  if (dead > 0) notes.push(`${where}: ${dead} of ${width} inputs were zero throughout.`);
  return [...new Set(notes)];
}

/** The settings of a tensor and one of its contributors, from resolved parameters that were checked by the plan. */
export function trimSettings(
  parameters: Readonly<Record<string, number | boolean | string>>,
  model: Readonly<Record<string, number | boolean | string>>,
): TrimSettings {
  return {
    density: densityOf(model),
    score: parameters.score as ScoreKind,
    scope: parameters.scope as ScoreScope,
    compensation: parameters.compensation as TrimSettings['compensation'],
  };
}
