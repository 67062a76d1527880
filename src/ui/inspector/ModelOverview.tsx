import { memo } from 'react';
import {
  formatCount,
  formatCounted,
  formatParameters,
  formatPercent,
  formatReal,
} from '../../formats/quantity';
import { type LayersRun, writesFactors } from '../layers/runs';
import { Fact, Section, Shortlist } from '../parts/Section';
import { modelColor, Swatch } from '../parts/Swatch';
import { contributorTotals, largest } from './model-overview';

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
            <li key={c.id} className="share">
              <span className="row">
                <Swatch color={c.color} />
                <span className="truncate">{c.label}</span>
              </span>
              <span className="numeric">
                {formatCount(changed)} of {formatCounted(total, 'tensor')}
              </span>
              <span className="bar norm-bar" aria-hidden="true">
                <span
                  className="bar-fill"
                  style={{ width: `${(changed / total) * 100}%`, background: modelColor(c.color) }}
                />
              </span>
            </li>
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
              <li key={t.id} className="share">
                <span className="row">
                  <Swatch color={c.color} />
                  <span className="truncate">{c.label}</span>
                </span>
                <span className="numeric">
                  {t.keptEnergy !== null
                    ? `${formatPercent(t.keptEnergy)} energy`
                    : t.kept !== null && 'energy not measured'}
                </span>
                <span className="bar norm-bar" aria-hidden="true">
                  <span
                    className="bar-fill"
                    style={{ width: `${(t.keptEnergy ?? 0) * 100}%`, background: modelColor(c.color) }}
                  />
                </span>
                <span className="small quiet share-more">
                  {t.kept === null
                    ? 'trimmed: not known before the merge'
                    : `${formatPercent(1 - t.kept / t.elements)} trimmed`}{' '}
                  · norm {formatReal(t.norm)} · {formatCounted(t.tensors, 'tensor')}
                </span>
              </li>
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
