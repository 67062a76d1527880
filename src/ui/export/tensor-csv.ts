/** The numbers of every tensor as CSV (RFC 4180), one row a tensor, in full precision. Pure. */
import type { TensorReport } from '../../reports/job';
import { keptEnergy } from '../charts/metrics';

const LINE = '\r\n';

type Field = string | number | boolean | null;

/** @param ids contributors, in the order of their columns */
export function tensorCsv(reports: readonly TensorReport[], ids: readonly string[]): string {
  const pairs = ids.flatMap((a, i) => ids.slice(i + 1).map((b) => [a, b] as const));
  const head = [
    ...['tensor', 'layer', 'module', 'shape', 'dtype', 'elements', 'copied'],
    ...['base_norm', 'output_change', 'sign_conflict', 'non_finite'],
    ...ids.flatMap((id) =>
      ['kept', 'sparsity', 'threshold', 'norm', 'kept_norm', 'kept_energy'].map((field) => `${field} ${id}`),
    ),
    ...pairs.map(([a, b]) => `cosine ${a} ${b}`),
  ];
  const rows = reports.map((report): Field[] => {
    const own = new Map(report.contributors.map((c, i) => [c.id, { ...c, i }]));
    return [
      report.name,
      report.layer ?? '',
      report.module,
      report.shape.join('x'),
      report.dtype,
      report.elements,
      report.copied,
      report.baseNorm,
      report.outputChange,
      report.signConflict,
      report.nonFinite,
      ...ids.flatMap((id): Field[] => {
        const c = own.get(id);
        if (!c || report.copied) return ['', '', '', '', '', ''];
        return [c.kept, 1 - c.kept / report.elements, c.threshold, c.norm, c.keptNorm, keptEnergy(c)];
      }),
      ...pairs.map(([a, b]) => {
        const i = own.get(a)?.i;
        const j = own.get(b)?.i;
        return i === undefined || j === undefined ? '' : (report.cosine[i]?.[j] ?? '');
      }),
    ];
  });
  return [head, ...rows].map((row) => row.map(field).join(',') + LINE).join('');
}

/** Quoted where it has to be. A text that a spreadsheet would take for a formula is led by an apostrophe. */
function field(value: Field): string {
  if (value === null) return '';
  const text = typeof value === 'string' ? value.replace(/^[=+\-@\t\r]/, "'$&") : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
