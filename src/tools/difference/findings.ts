/** Findings of a comparison, in sentences. */
import { displayName } from '../../formats/names';
import type { CompareReport } from './report';

/** Names listed in one sentence. */
const MOST_NAMES = 5;

type ReportFigures = Omit<CompareReport, 'words' | 'files' | 'seconds' | 'stages'>;

export function findingsOf(report: ReportFigures): string[] {
  const { total, tensors, failed, raw } = report;
  return [
    ...headline(report),
    ...listed(report.onlyInBase, 'is in the base only', 'are in the base only'),
    ...listed(report.onlyInFinetuned, 'is in the fine-tune only', 'are in the fine-tune only'),
    ...listed(
      report.shapeMismatches.map(({ name, base, finetuned }) => `${name} [${base}] and [${finetuned}]`),
      'has a different shape and was not compared',
      'have different shapes and were not compared',
    ),
    ...listed(
      raw.filter(({ identical }) => !identical).map(({ name }) => name),
      'is not computed with and differs byte by byte',
      'are not computed with and differ byte by byte',
    ),
    ...listed(
      failed.map(({ name, message }) => `${name} (${message})`),
      'could not be compared',
      'could not be compared',
    ),
    ...likeness(tensors, total.modified),
  ];
}

function headline({
  total,
  base,
  finetuned,
  raw,
  shapeMismatches,
  onlyInBase,
  onlyInFinetuned,
  failed,
}: ReportFigures): string[] {
  const { compared, identical, modified } = total;
  const alike = identical === compared && compared > 0;
  const complete = shapeMismatches.length + onlyInBase.length + onlyInFinetuned.length + failed.length === 0;
  if (alike) {
    const all = complete ? 'are identical' : 'are identical in what both have';
    return [
      `${shown(base)} and ${shown(finetuned)} ${all}: ${count(compared, 'tensor')}, not one bit differs.`,
    ];
  }
  const parts = [
    `${count(compared, 'tensor')} compared: ${modified} modified, ${identical} identical.`,
    `Overall the fine-tune is ${percent(total.relative)} of the base's norm away from it (‖Δ‖ ${real(total.normDelta)}); ${percent(total.changedRatio)} of the elements changed, ${percent(total.bitDifferentRatio)} in any bit.`,
  ];
  if (raw.length > 0)
    parts.push(
      `${count(raw.length, 'tensor')} of other dtypes ${raw.length === 1 ? 'was' : 'were'} compared byte by byte.`,
    );
  return parts;
}

function likeness(tensors: ReportFigures['tensors'], modified: number): string[] {
  const analysed = tensors.filter(({ lora }) => lora !== undefined);
  const failed = tensors.filter(({ spectrumFailed }) => spectrumFailed !== undefined);
  const words: string[] = [];
  if (analysed.length > 0) {
    const alike = analysed.filter(({ lora }) => lora!.potentialLora).length;
    const most = analysed.reduce((rank, { lora }) => Math.max(rank, lora!.rank95), 0);
    words.push(
      alike === analysed.length
        ? `Every modified matrix looks like a LoRA: 95 % of the change lies in at most ${most} directions.`
        : `${alike} of ${count(analysed.length, 'modified matrix', 'modified matrices')} look like a LoRA.`,
    );
  } else if (modified > 0 && failed.length === 0)
    words.push('No spectra of modified matrices were computed.');
  return [
    ...words,
    ...listed(
      failed.map(({ name, spectrumFailed }) => `${name} (${spectrumFailed})`),
      'could not be decomposed',
      'could not be decomposed',
    ),
  ];
}

/** One sentence about tensors by name, none for none of them. */
function listed(names: readonly string[], one: string, many: string): string[] {
  if (names.length === 0) return [];
  const some = names.slice(0, MOST_NAMES).map(shown).join('; ');
  const more = names.length > MOST_NAMES ? `; and ${names.length - MOST_NAMES} more` : '';
  return [`${count(names.length, 'tensor')} ${names.length === 1 ? one : many}: ${some}${more}.`];
}

export function count(n: number, one: string, many = `${one}s`): string {
  return `${n} ${n === 1 ? one : many}`;
}

function shown(name: string): string {
  return displayName(name);
}

// ---------------------------------------------------------------- numbers in report files: plain ASCII digits, a point, four significant digits

/** `0.1024`, `6.858`, `1.2e-7`; 0 is `0`. */
export function real(x: number): string {
  if (x === 0 || !Number.isFinite(x)) return String(x);
  const size = Math.abs(x);
  return size >= 1e-4 && size < 1e6 ? String(Number(x.toPrecision(4))) : x.toExponential(2);
}

/** A share as `10.2 %`; never 0 % or 100 % for what is neither. */
export function percent(share: number): string {
  const text = (share * 100).toFixed(2);
  if (share > 0 && text === '0.00') return '<0.01 %';
  if (share < 1 && text === '100.00') return '>99.99 %';
  return `${text} %`;
}
