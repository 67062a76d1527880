/** Numbers as CSV in long form (RFC 4180): a row for every run, tensor, metric and subject. Pure. */

import { isPredicted } from '../../merge/prediction/predicted-report';
import type { TensorReport } from '../../reports/job';
import { isAwaited, measure, metrics } from '../charts/metrics';
import { subjectsOf } from '../layers/subject';
import type { Contributor } from '../state/runs';

const LINE = '\r\n';
const HEAD = ['run', 'tensor', 'layer', 'module', 'elements', 'metric', 'subject', 'value', 'error', 'kind'];

interface CsvRun {
  name: string;
  contributors: readonly Contributor[];
  reports: Iterable<TensorReport>;
}

/** Every number of every tensor in full precision; `kind` is exact or predicted. */
export function tensorCsv(runs: readonly CsvRun[]): string {
  const rows = runs.flatMap(({ name, contributors, reports }) =>
    [...reports].flatMap((report) =>
      metrics.flatMap((metric) =>
        subjectsOf(metric, contributors).flatMap(({ ids }) => {
          const found = isAwaited(metric, report) ? null : measure(metric, report, ids);
          if (!found) return [];
          const place = [name, report.name, report.layer ?? '', report.module, report.elements];
          const kind = isPredicted(report) ? 'predicted' : 'exact';
          return [[...place, metric.id, ids.join(' × '), found.value, found.error, kind]];
        }),
      ),
    ),
  );
  return [HEAD, ...rows].map((row) => row.map(field).join(',') + LINE).join('');
}

/** Quoted where it has to be. A text that a spreadsheet would take for a formula is led by an apostrophe. */
function field(value: string | number): string {
  const text = typeof value === 'string' ? value.replace(/^[=+\-@\t\r]/, "'$&") : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
