/** The table of perplexities as drawn: cells, means, the best of each column. Pure. */

import type { ErrorReport } from '../../errors';
import { formatCounted } from '../../formats/quantity';
import { type EvaluateReport, overTexts, type RunningProgress } from '../../reports/evaluate';
import { secondsLeft } from '../../reports/time-left';
import { type EvaluationRow, targetKey } from './evaluation-rows';
import type {
  EvaluationSlice,
  EvaluationText,
  EvaluationWork,
  Outcome,
  PlannedCell,
} from './evaluation-state';
import { scoredText } from './evaluation-texts';
import { type JobProgress, runningProgress } from './job-state';

type Protocol = Pick<EvaluationSlice, 'amount' | 'window' | 'stride'>;

export interface TableColumn {
  id: string;
  name: string;
  /** Characters scored, and how many the text has. */
  scored: number;
  characters: number;
}

export interface TableRow {
  row: EvaluationRow;
  cells: TableCell[];
  mean: { perplexity: number; best: boolean } | null;
  /** Mean of the texts' bits per byte; null unless every text has one. */
  bitsPerByte: number | null;
  /** Seconds that the cells of this row took together; null before the first. */
  seconds: number | null;
  /** Bytes of the model if it were saved. */
  bytes: number | null;
  /** The recipe was another one when the dimmed cells were measured. */
  staleTitle: string | null;
  /** When the newest number from an earlier visit was measured, in milliseconds since 1970; null without one. */
  earlier: number | null;
}

export type TableCell =
  | { state: 'none' | 'queued' | 'running' }
  | {
      state: 'done';
      report: EvaluateReport;
      bytes: number | null;
      stale: boolean;
      best: boolean;
      earlier: number | null;
    }
  | { state: 'failed'; error: ErrorReport; stale: boolean };

/** Key of a saved outcome: the same target, text and protocol are measured once. */
export function outcomeKey(
  target: string,
  text: EvaluationText,
  { amount, window, stride }: Protocol,
): string {
  return JSON.stringify([target, text.sha256[amount], window, stride]);
}

/** The rows that are shown: all models, the recipe's merge, and every method that was or will be measured. */
function shownRows(rows: readonly EvaluationRow[], evaluation: EvaluationSlice): EvaluationRow[] {
  const planned = new Set(evaluation.work?.groups.flat().map((c) => c.rowId));
  const chosen = evaluation.texts.filter((t) => t.chosen);
  const known = ({ target }: EvaluationRow) =>
    chosen.some((text) => evaluation.outcomes.has(outcomeKey(targetKey(target), text, evaluation)));
  return rows.filter(
    (r) => r.group === 'models' || r.current || evaluation.lastOf.has(r.id) || planned.has(r.id) || known(r),
  );
}

/** The cells of these rows and the chosen texts that have no number yet, text by text. */
export function missingCells(rows: readonly EvaluationRow[], evaluation: EvaluationSlice): PlannedCell[] {
  return evaluation.texts
    .filter((t) => t.chosen)
    .flatMap((text) =>
      rows.flatMap((row): PlannedCell[] => {
        const key = outcomeKey(targetKey(row.target), text, evaluation);
        const known = evaluation.outcomes.get(key);
        if (known && 'report' in known) return [];
        return [
          {
            key,
            rowId: row.id,
            rowLabel: row.label,
            textId: text.id,
            textName: text.name,
            target: row.target,
            characters: scoredText(text.text, evaluation.amount).length,
            last: row.last ?? false,
          },
        ];
      }),
    );
}

/** Cells by the row they are in, rows and cells in the order given. */
export function cellsByRow(cells: readonly PlannedCell[]): PlannedCell[][] {
  const rows = new Map<string, PlannedCell[]>();
  for (const cell of cells) rows.set(cell.rowId, [...(rows.get(cell.rowId) ?? []), cell]);
  return [...rows.values()];
}

/** Rows that go side by side: more read their files less often, fewer are done sooner. */
const ROWS_TOGETHER = 8;

/**
 * Cells in groups that are measured together: rows that lack the same texts go side by side, a few at a time so that the
 * table fills; those that are measured by themselves come last.
 */
export function groupCells(cells: readonly PlannedCell[]): PlannedCell[][] {
  const groups = new Map<string, PlannedCell[][]>();
  for (const own of cellsByRow(cells)) {
    const alike = JSON.stringify([own.some((c) => c.last), own.map((c) => c.textId)]);
    groups.set(alike, [...(groups.get(alike) ?? []), own]);
  }
  return [...groups.values()]
    .flatMap((rows) =>
      Array.from({ length: Math.ceil(rows.length / ROWS_TOGETHER) }, (_, i) =>
        rows.slice(i * ROWS_TOGETHER, (i + 1) * ROWS_TOGETHER).flat(),
      ),
    )
    .sort((a, b) => Number(a.some((c) => c.last)) - Number(b.some((c) => c.last)));
}

export function evaluationTable(
  rows: readonly EvaluationRow[],
  evaluation: EvaluationSlice,
): { columns: TableColumn[]; rows: TableRow[] } {
  const texts = evaluation.texts.filter((t) => t.chosen);
  const table = shownRows(rows, evaluation).map((row) => tableRow(row, texts, evaluation));
  const base = table.find((r) => r.row.id === 'base');
  for (const group of ['models', 'merges'] as const) {
    const members = table.filter((r) => r.row.group === group);
    const rival = group === 'merges' ? base : undefined;
    texts.forEach((_, c) => {
      markBest(
        members.flatMap(({ cells }) => {
          const cell = cells[c];
          if (cell?.state !== 'done' || cell.stale) return [];
          const compared = comparedCells(cell, rival?.cells[c]);
          return [{ of: cell, value: cell.report.perplexity, rival: compared?.[1] ?? null }];
        }),
      );
    });
    markBest(
      members.flatMap((row) =>
        row.mean && row.staleTitle === null
          ? [{ of: row.mean, value: row.mean.perplexity, rival: comparedMean(row, rival) }]
          : [],
      ),
    );
  }
  const columns = texts.map((text) => ({
    id: text.id,
    name: text.name,
    scored: scoredText(text.text, evaluation.amount).length,
    characters: text.text.length,
  }));
  return { columns, rows: table };
}

/** Models, then merges, each by their mean, the best first, those without one last. */
export function rankRows(rows: readonly TableRow[]): TableRow[] {
  const models = rows.filter((r) => r.row.group === 'models');
  const merges = rows.filter((r) => r.row.group === 'merges');
  const value = (r: TableRow) => r.mean?.perplexity ?? Number.POSITIVE_INFINITY;
  const ranked = (of: TableRow[]) => of.sort((a, b) => (value(a) === value(b) ? 0 : value(a) - value(b)));
  return [...ranked(models), ...ranked(merges)];
}

/**
 * The merge with the least mean (of one text: its number) among at least two that can be compared, or null; with the mean
 * of the base where it scored the same tokens.
 */
export function bestMerge(
  rows: readonly TableRow[],
): { best: TableRow; of: number; base: number | null } | null {
  const merges = measuredMerges(rows);
  const [best] = rankRows(merges);
  if (!best || merges.length < 2) return null;
  const base = rows.find((r) => r.row.id === 'base');
  return { best, of: merges.length, base: comparedMean(best, base) };
}

/** On how many texts a merge is better and worse than a model, of those on which both scored the same tokens. */
export interface Standing {
  label: string;
  better: number;
  worse: number;
  of: number;
}

/** Where the only merge that was measured stands against each model; null with none or several, or nothing to compare. */
export function loneMerge(rows: readonly TableRow[]): { merge: TableRow; against: Standing[] } | null {
  const [merge, ...others] = measuredMerges(rows);
  if (!merge || others.length > 0) return null;
  const against = rows.flatMap(({ row, cells }): Standing[] => {
    const pairs = merge.cells.flatMap((cell, i) => {
      const pair = comparedCells(cell, cells[i]);
      return pair ? [pair] : [];
    });
    if (row.group !== 'models' || pairs.length === 0) return [];
    const better = pairs.filter(([own, other]) => own < other).length;
    const worse = pairs.filter(([own, other]) => own > other).length;
    return [{ label: row.label, better, worse, of: pairs.length }];
  });
  return against.length > 0 ? { merge, against } : null;
}

function measuredMerges(rows: readonly TableRow[]): TableRow[] {
  return rows.filter((r) => r.row.group === 'merges' && r.mean && r.staleTitle === null);
}

/** Perplexities of two cells of one text; null unless both are of now and scored as many tokens. */
function comparedCells(a: TableCell | undefined, b: TableCell | undefined): [number, number] | null {
  if (a?.state !== 'done' || b?.state !== 'done' || a.stale || b.stale) return null;
  return a.report.tokens === b.report.tokens ? [a.report.perplexity, b.report.perplexity] : null;
}

/** The mean of another row; null where a text cannot be compared. */
function comparedMean(row: TableRow, other: TableRow | undefined): number | null {
  const comparable = row.cells.every((cell, i) => comparedCells(cell, other?.cells[i]) !== null);
  return comparable ? (other?.mean?.perplexity ?? null) : null;
}

/** Different errors of the table, each with the rows it befell. */
export function tableErrors(rows: readonly TableRow[]): { rows: string[]; error: ErrorReport }[] {
  const found = new Map<string, { rows: string[]; error: ErrorReport }>();
  for (const { row, cells } of rows) {
    for (const cell of cells) {
      if (cell.state !== 'failed' || cell.stale) continue;
      const key = `${cell.error.code} ${cell.error.message}`;
      const entry = found.get(key) ?? { rows: [], error: cell.error };
      if (!entry.rows.includes(row.label)) entry.rows.push(row.label);
      found.set(key, entry);
    }
  }
  return [...found.values()];
}

/** How far measuring is: the share of the characters that are scored, and the seconds left at the pace so far. */
export function measuringProgress(
  { groups, at }: EvaluationWork,
  running: RunningProgress | null,
  elapsed: number,
): JobProgress {
  const characters = groups.map((group) => group.reduce((sum, c) => sum + c.characters, 0));
  const total = characters.reduce((a, b) => a + b, 0);
  const before = characters.slice(0, at).reduce((a, b) => a + b, 0);
  const now = running ? runningProgress(running) : null;
  const part = now && running?.phase === 'running' ? now.share : 0;
  const share = total > 0 ? (before + part * (characters[at] ?? 0)) / total : 0;
  return {
    phase: now?.phase ?? 'opening',
    item: groupWords({ groups, at }),
    share,
    counted: now?.counted ?? null,
    bytes: now?.bytes ?? null,
    rate: now?.rate ?? null,
    secondsLeft: secondsLeft({ left: 1 - share, perSecond: share > 0.005 ? share / elapsed : 0 }),
  };
}

/** `base on common`, `12 models side by side on 4 texts, 1 of 3`. */
function groupWords({ groups, at }: EvaluationWork): string {
  const group = groups[at] ?? [];
  const rows = new Set(group.map((c) => c.rowLabel));
  const texts = new Set(group.map((c) => c.textName));
  const who = rows.size === 1 ? [...rows][0] : `${formatCounted(rows.size, 'model')} side by side`;
  const place = groups.length > 1 ? `, ${at + 1} of ${groups.length}` : '';
  return `${who} on ${texts.size === 1 ? [...texts][0] : formatCounted(texts.size, 'text')}${place}`;
}

function tableRow(
  row: EvaluationRow,
  texts: readonly EvaluationText[],
  evaluation: EvaluationSlice,
): TableRow {
  const target = targetKey(row.target);
  const last = evaluation.lastOf.get(row.id);
  const of = (key: string, text: EvaluationText): Outcome | undefined =>
    evaluation.outcomes.get(outcomeKey(key, text, evaluation));
  // A row shows the past only as a whole: numbers of two recipes never stand side by side.
  const fresh =
    texts.some((t) => of(target, t)) || evaluation.work?.groups.flat().some((c) => c.rowId === row.id);
  const stale =
    !fresh && last !== undefined && last.target !== target && texts.some((t) => of(last.target, t));
  const cells = texts.map((text): TableCell => {
    const key = outcomeKey(stale ? last.target : target, text, evaluation);
    const planned = evaluation.work?.groups.findIndex((g) => g.some((c) => c.key === key)) ?? -1;
    const at = evaluation.work?.at ?? -1;
    const outcome = evaluation.outcomes.get(key);
    // of a group at work some may be done already; failures are tried again
    const done = outcome !== undefined && 'report' in outcome;
    if (planned >= 0 && planned === at && !done) return { state: 'running' };
    if (planned > at) return { state: 'queued' };
    if (!outcome) return { state: 'none' };
    return 'report' in outcome
      ? {
          state: 'done',
          report: outcome.report,
          bytes: outcome.bytes,
          stale,
          best: false,
          earlier: outcome.earlier ?? null,
        }
      : { state: 'failed', error: outcome.error, stale };
  });
  const reports = cells.flatMap((c) => (c.state === 'done' ? [c.report] : []));
  const whole = reports.length === cells.length && reports.length > 0;
  return {
    row,
    cells,
    // Every text counts the same: e to the mean of the texts' mean losses.
    mean: whole ? { perplexity: overTexts(reports).perplexity, best: false } : null,
    bitsPerByte: whole ? meanOf(reports.map((r) => r.bitsPerByte)) : null,
    seconds: reports.length > 0 ? reports.reduce((s, r) => s + r.seconds, 0) : null,
    bytes: cells.find((c) => c.state === 'done')?.bytes ?? null,
    staleTitle: stale ? last.title : null,
    earlier: cells.reduce<number | null>(
      (newest, cell) =>
        cell.state === 'done' && cell.earlier !== null ? Math.max(newest ?? 0, cell.earlier) : newest,
      null,
    ),
  };
}

function meanOf(values: readonly (number | null)[]): number | null {
  const known = values.filter((v) => v !== null);
  return known.length === values.length ? known.reduce((a, b) => a + b, 0) / known.length : null;
}

/** The linear scale of the dots, from the least mean to the largest that is not far off. */
export interface DotScale {
  least: number;
  most: number;
}

/** So many times the median is far off: a merge that broke would leave one dot of all others. */
const FAR_OFF = 1.5;

/** The scale of all means, of those of the past too; null before two differ. */
export function dotScale(rows: readonly TableRow[]): DotScale | null {
  const values = rows.flatMap(({ mean }) => (mean ? [mean.perplexity] : [])).sort((a, b) => a - b);
  const [least = 0] = values;
  const median = values[Math.floor((values.length - 1) / 2)] ?? 0;
  const near = values.filter((v) => v <= FAR_OFF * median);
  const most = near.at(-1) ?? 0;
  const end = most > least ? most : (values.at(-1) ?? 0);
  return end > least ? { least, most: end } : null;
}

/** Where a perplexity lies on the scale, in [0, 1]; null beyond its end. */
export function dotAt({ least, most }: DotScale, perplexity: number): number | null {
  return perplexity > most ? null : (perplexity - least) / (most - least);
}

/** Marks the least of at least two; nothing where the rival's number is not above it. */
function markBest(items: readonly { of: { best: boolean }; value: number; rival: number | null }[]): void {
  if (items.length < 2) return;
  const least = Math.min(...items.map(({ value }) => value));
  for (const { of, value, rival } of items) of.best = value === least && (rival === null || value < rival);
}
