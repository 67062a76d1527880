import '../styles/outputs.css';
import type { ReactNode } from 'react';
import { formatCounted, formatPercent, formatReal, formatSeconds } from '../../formats/quantity';
import { type FindBestReport, OVERLAPS } from '../../reports/find-best';
import { meanLoss } from '../../reports/paired-error';
import { Section } from '../parts/Section';
import type { Contributor } from '../state/runs';

/** The result of the recommended merge: share kept of each contributor, and the table of all that was tried. */
export function Recommended({
  report,
  contributors,
}: {
  report: FindBestReport;
  contributors: readonly Contributor[];
}) {
  const { texts, rows, best, alike, kept, overlap } = report;
  const label = (id: string) => contributors.find((c) => c.id === id)?.label ?? id;
  const won = rows.find(({ id }) => id === best)!;
  return (
    <Section title="Result" className="stack loose recommended">
      <p className="recommended-kept">
        {won.label}
        {won.lambda === null ? '' : `, λ ${won.lambda}`}:{' '}
        {kept.map((share, i) => (
          <span key={texts[i]!.name}>
            {i === 0 ? 'keeps ' : ', '}
            <strong>{share === null ? 'no gain' : formatPercent(share)}</strong>{' '}
            {share === null ? 'to keep' : 'of the gain'} of {label(texts[i]!.name)}
          </span>
        ))}
        .
      </p>
      <NumbersTable
        label="Perplexities of base, contributors and merges"
        caption="Perplexity on the part of each text that nothing was tuned or chosen on; lower is better"
        first={<span className="visually-hidden">model</span>}
        heads={[
          { id: 'λ', text: 'λ' },
          ...texts.map(({ name, tokens }) => ({
            id: name,
            text: label(name),
            title: `${formatCounted(tokens.reporting, 'token')} scored`,
          })),
        ]}
        rows={rows.map(({ id, label: title, kind, lambda, blocks, error }) => ({
          id,
          title: `${kind === 'base' || kind === 'contributor' ? label(title) : title}${id === best ? ' (merged)' : alike.includes(id) ? ' (cannot be told apart)' : ''}`,
          chosen: id === best,
          cells: [
            lambda ?? '–',
            ...(blocks.reporting ?? []).map((text) => figure(text)),
            ...(error ? [error.message] : []),
          ],
        }))}
      />
      {overlap !== null && overlap > OVERLAPS ? (
        <p className="small quiet">
          One of the contributors has {formatPercent(overlap)} of another’s gain on its text: they overlap in
          what they learned. A text of your own as calibration would be a better guide to λ.
        </p>
      ) : null}
      <p className="small quiet">
        {report.measured} merges measured in {formatSeconds(report.seconds)}
      </p>
    </Section>
  );
}

/** Perplexity of a text, with its standard error. */
function figure(text: Parameters<typeof meanLoss>[0][number]): string {
  const { mean, stderr } = meanLoss([text]);
  const value = Math.exp(mean);
  return `${formatReal(value)}${stderr === null ? '' : ` ± ${formatReal(value * stderr)}`}`;
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
