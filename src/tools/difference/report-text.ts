/** The figures of a comparison as text: rows of tables, and the one file of them. */

import { displayName } from '../../formats/names';
import { percent, real } from './number-text';
import type { CompareReport, LoraLikeness, TensorDifference } from './report';

type Report = Omit<CompareReport, 'files' | 'stages'>;

/** `difference.txt`: every tensor, the most changed first, and what could not be compared. */
export function differenceText(report: Report): string {
  const lines = [
    `${displayName(report.base)} -> ${displayName(report.finetuned)}`,
    `changed: |delta| > ${report.threshold}; * marks a modified tensor`,
    '',
    ...table([TENSOR_COLUMNS, ...ranked(report).map(tensorRow)]),
  ];
  const listed = (title: string, names: readonly string[]) => {
    if (names.length > 0) lines.push('', `${title}:`, ...names.map((name) => `  ${displayName(name)}`));
  };
  listed('only in the base', report.onlyInBase);
  listed('only in the fine-tune', report.onlyInFinetuned);
  listed(
    'other shape',
    report.shapeMismatches.map(({ name, base, finetuned }) => `${name} [${base}] [${finetuned}]`),
  );
  listed(
    'compared byte by byte',
    report.raw.map(({ name, identical }) => `${name} ${identical ? 'identical' : 'different'}`),
  );
  listed(
    'could not be compared',
    report.failed.map(({ name, message }) => `${name}: ${message}`),
  );
  return `${lines.join('\n')}\n`;
}

/** Tensors by descending relative difference. */
export function ranked({ ranking, tensors }: Pick<Report, 'ranking' | 'tensors'>): TensorDifference[] {
  const byName = new Map(tensors.map((tensor) => [tensor.name, tensor]));
  return ranking.map((name) => byName.get(name)!);
}

export const TENSOR_COLUMNS = [
  'tensor',
  'shape',
  'relative',
  'mean |delta|',
  'max |delta|',
  'changed',
  'cosine',
  'sign flips',
  'stable rank',
];

export function tensorRow(t: TensorDifference): string[] {
  return [
    `${displayName(t.name)}${t.modified ? ' *' : ''}`,
    t.shape.join('x') || 'scalar',
    real(t.relative),
    real(t.meanAbs),
    real(t.maxAbs),
    percent(t.changedRatio),
    t.cosine.toFixed(6),
    percent(t.signFlipRatio),
    t.stableRank === null ? '-' : real(t.stableRank),
  ];
}

export const LORA_COLUMNS = ['tensor', 'rank95', 'effective rank', 'smaller side', 'looks like a LoRA'];

export function loraRow({ name, lora, shape }: TensorDifference): string[] {
  return [
    displayName(name),
    rank(lora!.rank95, lora!.rank95IsBound),
    rank(lora!.effectiveRank, lora!.effectiveRankIsBound),
    String(Math.min(...shape)),
    looks(lora!),
  ];
}

function rank(value: number, isBound: boolean): string {
  return isBound ? `>= ${value}` : String(value);
}

function looks({ potentialLora }: LoraLikeness): string {
  return potentialLora ? 'yes' : 'no';
}

/** Pads every column but the last to its widest cell. */
function table(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0]!.map((_, i) => rows.reduce((widest, row) => Math.max(widest, row[i]!.length), 0));
  return rows.map((row) =>
    row
      .map((cell, i) => (i < row.length - 1 ? cell.padEnd(widths[i]!) : cell))
      .join('  ')
      .trimEnd(),
  );
}
