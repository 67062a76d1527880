import { memo, type ReactNode } from 'react';
import {
  formatCount,
  formatCounted,
  formatParameters,
  formatPercent,
  formatReal,
} from '../../formats/quantity';
import { awaitsMerge } from '../../merge/prediction/predicted-report';
import type { TensorReport } from '../../reports/job';
import { changing } from '../charts/measured';
import { type LayersRun, writesFactors } from '../layers/runs';
import { Fact, Section, Shortlist } from '../parts/Section';
import { modelColor, Swatch } from '../parts/Swatch';
import type { Contributor } from '../state/runs';

/** The model as a whole: what each contributor changes, and the tensors worth a look. */
export const ModelOverview = memo(function ModelOverview({ source }: { source: LayersRun }) {
  const elements = source.tensors.reduce((sum, t) => sum + t.elements, 0);
  const copied = source.tensors.filter((t) => t.copied).length;
  if (source.tensors.length === 0) {
    return (
      <Section title="Whole model">
        <p className="quiet">Its tensors are listed here once there is a plan.</p>
      </Section>
    );
  }
  return (
    <>
      <Section title="Whole model">
        <dl className="stack facts">
          <Fact label="Tensors" value={formatCount(source.tensors.length)} />
          <Fact label="Copied untouched" value={formatCount(copied)} />
          <Fact label="Parameters" value={formatParameters(elements)} />
        </dl>
      </Section>
      {source.reports.size === 0 || writesFactors(source) ? (
        <Planned source={source} />
      ) : (
        <Merged source={source} />
      )}
    </>
  );
});

interface ShareProps {
  contributor: Contributor;
  /** Length of its bar, in [0, 1]. */
  share: number;
  more?: string;
  children: ReactNode;
}

/** A contributor with a number, and that as a bar in its color. */
function Share({ contributor: c, share, more, children }: ShareProps) {
  return (
    <li className="share">
      <span className="row">
        <Swatch color={c.color} />
        <span className="truncate">{c.label}</span>
      </span>
      <span className="numeric">{children}</span>
      <span className="bar norm-bar" aria-hidden="true">
        <span className="bar-fill" style={{ width: `${share * 100}%`, background: modelColor(c.color) }} />
      </span>
      {more === undefined ? null : <span className="small quiet share-more">{more}</span>}
    </li>
  );
}

/** Before a merge, and of factors after it too: who takes part in how much, by count of tensors. */
function Planned({ source }: { source: LayersRun }) {
  const total = source.tensors.length;
  const factors = writesFactors(source);
  return (
    <Section title={factors ? 'Who takes part' : 'Who changes what'}>
      <ul className="stack">
        {source.contributors.map((c, index) => {
          const changed = source.tensors.filter((t) => t.contributors.includes(index)).length;
          return (
            <Share key={c.id} contributor={c} share={changed / total}>
              {formatCount(changed)} of {formatCounted(total, 'tensor')}
            </Share>
          );
        })}
      </ul>
      <p className="small quiet">
        {factors
          ? 'The tensors are factors of a LoRA: what they change is not measured.'
          : 'Select a tensor to see its numbers. They are measured while the merge runs.'}
      </p>
    </Section>
  );
}

function Merged({ source }: { source: LayersRun }) {
  const totals = contributorTotals(
    source.reports.values(),
    source.contributors.map((c) => c.id),
  );
  return (
    <>
      <Section title={source.state === 'predicted' ? 'What would be kept' : 'What was kept'}>
        {totals.every((t) => t.elements === 0) ? (
          <p className="quiet">Nothing: every tensor keeps its bytes.</p>
        ) : null}
        <ul className="stack">
          {totals.map((t) => {
            const c = source.contributors.find((c) => c.id === t.id);
            if (!c || t.elements === 0) return null;
            return (
              <Share
                key={t.id}
                contributor={c}
                share={t.keptEnergy ?? 0}
                more={`${
                  t.kept === null
                    ? 'trimmed: not known before the merge'
                    : `${formatPercent(1 - t.kept / t.elements)} trimmed`
                } · norm ${formatReal(t.norm)} · ${formatCounted(t.tensors, 'tensor')}`}
              >
                {t.keptEnergy !== null
                  ? `${formatPercent(t.keptEnergy)} energy`
                  : t.kept !== null && 'energy not measured'}
              </Share>
            );
          })}
        </ul>
      </Section>
      {source.state === 'predicted' ? null : (
        <>
          <Shortlist
            title="Largest relative change"
            tensors={largest(source.reports.values(), (r) => r.outputChange, 5)}
            value={(r) => formatReal(r.outputChange)}
          />
          <Shortlist
            title="Most sign conflict"
            tensors={largest(source.reports.values(), (r) => r.signConflict, 5)}
            value={(r) => formatPercent(r.signConflict)}
          />
        </>
      )}
    </>
  );
}

// The whole model in a few numbers, from the reports of its tensors. Pure.

interface ContributorTotals {
  id: string;
  /** Tensors it changes. */
  tensors: number;
  /** Elements kept; null before a merge that cannot be predicted. */
  kept: number | null;
  elements: number;
  /** ‖τ‖ over all tensors, before selection. */
  norm: number;
  /** Share of ‖τ‖² kept, in [0, 1]; null where it is not measured, or not yet. */
  keptEnergy: number | null;
}

/** Sums over all tensors a contributor changes; norms add as squares. */
export function contributorTotals(
  reports: Iterable<TensorReport>,
  ids: readonly string[],
): ContributorTotals[] {
  const all = [...reports];
  return ids.map((id) => {
    let tensors = 0;
    let kept: number | null = 0;
    let elements = 0;
    let square = 0;
    let keptSquare = 0;
    for (const report of all) {
      const c = changing(report).find((c) => c.id === id);
      if (!c) continue;
      tensors += 1;
      const isOpen = awaitsMerge(report);
      kept = kept === null || isOpen ? null : kept + c.kept;
      elements += report.elements;
      square += c.norm ** 2;
      keptSquare += c.keptNorm === null || isOpen ? Number.NaN : c.keptNorm ** 2;
    }
    const keptEnergy = Number.isNaN(keptSquare) ? null : square > 0 ? keptSquare / square : 0;
    return { id, tensors, kept, elements, norm: Math.sqrt(square), keptEnergy };
  });
}

/** The tensors with the largest values, largest first. */
export function largest<T>(tensors: Iterable<T>, value: (tensor: T) => number, count: number): T[] {
  return [...tensors]
    .filter((t) => value(t) > 0)
    .sort((a, b) => value(b) - value(a))
    .slice(0, count);
}
