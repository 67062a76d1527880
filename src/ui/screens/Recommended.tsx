import '../styles/outputs.css';
import type { ReactNode } from 'react';
import { formatCounted, formatPercent, formatReal, formatSeconds } from '../../formats/quantity';
import { OVERLAPS, type RecommendedReport } from '../../reports/merge';
import { Section } from '../parts/Section';
import { type Contributor, PHASE_TITLES } from '../state/runs';

/** The result of the recommended merge: share kept of each contributor, comparison of all, settings tried. */
export function Recommended({
  report,
  contributors,
}: {
  report: RecommendedReport;
  contributors: readonly Contributor[];
}) {
  const label = (id: string) => contributors.find((c) => c.id === id)?.label ?? id;
  const { title, lambda } = report.candidates[report.chosen]!;
  const { overlap } = report;
  return (
    <Section title="Result" className="stack loose recommended">
      <p className="recommended-kept">
        {title}, λ {lambda}:{' '}
        {report.contributors.map(({ id }, i) => {
          const share = report.kept[i] ?? null;
          return (
            <span key={id}>
              {i === 0 ? 'keeps ' : ', '}
              <strong>{share === null ? 'no gain' : formatPercent(share)}</strong>{' '}
              {share === null ? 'to keep' : 'of the gain'} of {label(id)}
            </span>
          );
        })}
        .
      </p>
      <Compared report={report} label={label} />
      {overlap !== null && overlap > OVERLAPS ? (
        <p className="small quiet">
          One of the contributors has {formatPercent(overlap)} of another’s gain on its text: they overlap in
          what they learned. A text of your own as calibration would be a better guide to λ.
        </p>
      ) : null}
      <Tried report={report} />
      <Answers report={report} label={label} />
      <p className="small quiet">{timeText(report)}</p>
    </Section>
  );
}

interface Part {
  report: RecommendedReport;
  label(id: string): string;
}

interface NumbersProps {
  label: string;
  caption?: string;
  /** Of the columns behind the first, each with its explanation. */
  heads: readonly { id: string; text: string; title?: string }[];
  first: ReactNode;
  rows: readonly { id: string; title: string; chosen: boolean; cells: readonly ReactNode[] }[];
}

/** Numbers of models or settings; the chosen row stands out. */
export function NumbersTable({ label, caption, heads, first, rows }: NumbersProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region is reached by keyboard too.
    <section className="scroll-x" tabIndex={0} aria-label={label}>
      <table className="plain-table" data-numbers>
        {caption === undefined ? null : <caption>{caption}</caption>}
        <thead>
          <tr>
            <th scope="col">{first}</th>
            {heads.map(({ id, text, title }) => (
              <th key={id} scope="col" title={title}>
                {text}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ id, title, chosen, cells }) => (
            <tr key={id} data-chosen={chosen || undefined}>
              <th scope="row">{title}</th>
              {cells.map((cell, i) => (
                <td key={heads[i]!.id}>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Compared({ report, label }: Part) {
  const rows = [
    { id: 'base', title: 'Base', values: report.base },
    ...report.contributors.map(({ id, perplexity }) => ({ id, title: label(id), values: perplexity })),
    { id: 'merge', title: 'Merge', values: report.merge },
  ];
  return (
    <NumbersTable
      label="Perplexities of base, contributors and merge"
      caption="Perplexity on text of each contributor that nothing was calibrated on; lower is better"
      first={<span className="visually-hidden">model</span>}
      heads={report.texts.map(({ id, calibration, tokens }) => ({
        id,
        text: `${label(id)}’s text`,
        title: `${calibration}; ${formatCounted(tokens, 'token')} scored`,
      }))}
      rows={rows.map(({ id, title, values }) => ({
        ...{ id, title, chosen: id === 'merge', cells: values.map(formatReal) },
      }))}
    />
  );
}

function Tried({ report }: { report: RecommendedReport }) {
  return (
    <NumbersTable
      label="What was tried"
      caption="What was tried: geometric mean of the perplexities on these texts"
      first="method"
      heads={['λ', 'perplexity', 'time'].map((text) => ({ id: text, text }))}
      rows={report.candidates.map(({ title, lambda, perplexity, reason, seconds }, i) => ({
        id: title,
        title: i === report.chosen ? `${title} (merged)` : title,
        chosen: i === report.chosen,
        cells: [lambda ?? '–', perplexity === null ? reason : formatReal(perplexity), formatSeconds(seconds)],
      }))}
    />
  );
}

function Answers({ report, label }: Part) {
  const titles: Record<string, string> = { base: 'Base', merge: 'Merge' };
  return (
    <dl className="stack tight recommended-answers" aria-label="The same prompt, continued by all">
      {report.answers.map(({ id, text }) => (
        <div key={id}>
          <dt>{titles[id] ?? label(id)}</dt>
          <dd>
            <span className="faint">{report.prompt}</span>
            {text}
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** Seconds of the search and the merge together. */
export function secondsInAll({ seconds }: RecommendedReport): number {
  return Object.values(seconds).reduce((a, b) => a + b, 0);
}

/** `Models write their own text 52 % · Searching for λ 30 % …` */
function timeText(report: RecommendedReport): string {
  const { seconds } = report;
  const total = secondsInAll(report);
  const shares = Object.entries(seconds).filter(([, s]) => s >= 0.005 * total);
  const words = shares.map(
    ([phase, s]) =>
      `${PHASE_TITLES[phase as keyof typeof PHASE_TITLES] ?? phase} ${formatPercent(s / total)}`,
  );
  return `${formatSeconds(total)} in all: ${words.join(' · ')}`;
}
