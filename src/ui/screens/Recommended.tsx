import { formatPercent, formatReal, formatSeconds } from '../../formats/quantity';
import { OVERLAPS, type RecommendedReport } from '../../reports/merge';
import { Section } from '../parts/Section';
import { PHASE_TITLES } from '../state/run-log';
import type { Contributor } from '../state/runs';

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

function Compared({ report, label }: Part) {
  const rows = [
    { id: 'base', title: 'Base', values: report.base },
    ...report.contributors.map(({ id, perplexity }) => ({ id, title: label(id), values: perplexity })),
    { id: 'merge', title: 'Merge', values: report.merge },
  ];
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region is reached by keyboard too.
    <section className="scroll-x" tabIndex={0} aria-label="Perplexities of base, contributors and merge">
      <table className="plain-table" data-numbers>
        <caption>
          Perplexity on text of each contributor that nothing was calibrated on; lower is better
        </caption>
        <thead>
          <tr>
            <th scope="col">
              <span className="visually-hidden">model</span>
            </th>
            {report.texts.map(({ id, calibration, tokens }) => (
              <th key={id} scope="col" title={`${calibration}; ${tokens} tokens scored`}>
                {label(id)}’s text
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ id, title, values }) => (
            <tr key={id} data-chosen={id === 'merge' || undefined}>
              <th scope="row">{title}</th>
              {values.map((value, i) => (
                <td key={report.texts[i]!.id}>{formatReal(value)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Tried({ report }: { report: RecommendedReport }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region is reached by keyboard too.
    <section className="scroll-x" tabIndex={0} aria-label="What was tried">
      <table className="plain-table" data-numbers>
        <caption>What was tried: geometric mean of the perplexities on these texts</caption>
        <thead>
          <tr>
            {['method', 'λ', 'perplexity', 'time'].map((head) => (
              <th key={head} scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {report.candidates.map(({ title, lambda, perplexity, reason, seconds }, i) => (
            <tr key={title} data-chosen={i === report.chosen || undefined}>
              <th scope="row">{i === report.chosen ? `${title} (merged)` : title}</th>
              <td>{lambda ?? '–'}</td>
              <td>{perplexity === null ? reason : formatReal(perplexity)}</td>
              <td>{formatSeconds(seconds)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
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

/** `Models write their own text 52 % · Searching for λ 30 % …` */
/** Seconds of the search and the merge together. */
export function secondsInAll({ seconds }: RecommendedReport): number {
  return Object.values(seconds).reduce((a, b) => a + b, 0);
}

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
