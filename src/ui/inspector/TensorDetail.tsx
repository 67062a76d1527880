import { Fragment, lazy, Suspense, useMemo } from 'react';
import { formatCount, formatCounted, formatPercent, formatReal, formatShape } from '../../formats/quantity';
import { awaitsMerge } from '../../merge/prediction/predicted-report';
import type { DeltaStatistics } from '../../reports/delta-statistics';
import type { ContributorReport, TensorReport } from '../../reports/job';
import type { PlanTensor } from '../../reports/plan';
import { colorScale } from '../charts/color-scale';
import { changing, keptEnergy } from '../charts/measured';
import { metricById } from '../charts/metrics';
import { Fact, modelColor, Section, Swatch } from '../parts/Section';
import { deltaKey } from '../state/delta-statistics';
import { predictedMasks } from '../state/predicted-reports';
import type { Contributor } from '../state/runs';
import { useParts, useShownTheme, useStudioState } from '../studio-context';

const ChangeCharts = lazy(() => import('./ChangeCharts').then((m) => ({ default: m.ChangeCharts })));

interface TensorDetailProps {
  tensor: PlanTensor;
  report: TensorReport | undefined;
  contributors: readonly Contributor[];
  /** Name of its run; null: the current recipe. */
  of: string | null;
  /** It is a factor of a LoRA. */
  factor: boolean;
}

/** Everything known about one tensor in a run. */
export function TensorDetail({ tensor, report, contributors, of, factor }: TensorDetailProps) {
  const changing = tensor.contributors.flatMap((i) => contributors[i] ?? []);
  return (
    <>
      <Section title="Tensor">
        <h3 className="tensor-title">
          <Breakable name={tensor.name} />
        </h3>
        <p className="small quiet">
          {formatShape(tensor.shape)} · {tensor.dtype} · {formatCounted(tensor.elements, 'element')}
        </p>
        {of === null ? null : <p className="small">In {of}:</p>}
      </Section>
      {tensor.copied ? (
        <p className="quiet">
          No contributor changes this tensor: its bytes are copied from the base, untouched.
        </p>
      ) : report && !factor ? (
        <Measured report={report} contributors={contributors} ofRecipe={of === null} />
      ) : (
        <Section title={factor ? 'Made of' : 'Changed by'}>
          <ul className="stack">
            {changing.map((c) => (
              <li key={c.id} className="row">
                <Swatch color={c.color} />
                {c.label}
              </li>
            ))}
          </ul>
          <p className="small quiet">
            {factor
              ? 'A factor of a LoRA: what it changes is not measured.'
              : 'Not measured yet. Its numbers appear here once the merge has reached it.'}
          </p>
        </Section>
      )}
    </>
  );
}

interface MeasuredProps {
  report: TensorReport;
  contributors: readonly Contributor[];
  /** The report is of the current recipe, and so are the masks. */
  ofRecipe: boolean;
}

function Measured({ report, contributors, ofRecipe }: MeasuredProps) {
  const statistics = useStatisticsOf(report.name);
  const masks = usePredictedMasks(ofRecipe ? statistics : undefined);
  const byId = new Map(contributors.map((c) => [c.id, c]));
  const named = (id: string) => byId.get(id) ?? { id, label: id, color: 0 };
  const changed = changing(report);
  const others = report.contributors.filter((c) => c.norm === 0).map((c) => named(c.id).label);
  const largest = Math.max(...changed.map((c) => c.norm), 0);
  const isOpen = awaitsMerge(report);
  return (
    <>
      {changed.map((c) => {
        return (
          <ContributorNumbers
            key={c.id}
            contributor={named(c.id)}
            numbers={c}
            elements={report.elements}
            isOpen={isOpen}
            largest={largest}
            statistics={statistics}
            mask={masks.get(c.id)}
          />
        );
      })}
      {others.length > 0 ? <p className="small quiet">Not changed by {others.join(', ')}.</p> : null}
      <Section title="Together">
        <dl className="stack facts">
          {changed.length > 1 && !isOpen ? (
            <Fact label="Sign conflict" value={formatPercent(report.signConflict)} />
          ) : null}
          {isOpen ? null : <Fact label="Change / base norm" value={formatReal(report.outputChange)} />}
          <Fact
            label="NaN and Inf"
            value={report.nonFinite === 0 ? 'none' : formatCounted(report.nonFinite, 'value')}
            bad={report.nonFinite > 0}
          />
        </dl>
      </Section>
      {changed.length > 1 ? (
        <Section title="Cosine of the changes">
          <CosineMatrix labels={report.contributors.map((c) => named(c.id))} cosine={report.cosine} />
        </Section>
      ) : null}
    </>
  );
}

interface ContributorNumbersProps {
  contributor: Contributor;
  numbers: ContributorReport;
  elements: number;
  /** The effect of the method on the change is unknown before it runs. */
  isOpen: boolean;
  /** Largest ‖τ‖ among the contributors: the bars' common scale. */
  largest: number;
  statistics: DeltaStatistics | undefined;
  mask: Uint8Array | undefined;
}

/** One contributor: ‖τ‖ as a bar, the kept part of it solid, and its numbers. */
function ContributorNumbers(props: ContributorNumbersProps) {
  const { contributor, numbers, elements, isOpen, largest, statistics, mask } = props;
  const { kept, threshold, norm, keptNorm, rescaledNorm } = numbers;
  // what keeps everything has no mask, and no share that is kept
  const isWhole = isOpen || kept === elements;
  const energy = isWhole ? null : keptEnergy(numbers);
  const width = (value: number) => `${largest > 0 ? (value / largest) * 100 : 0}%`;
  const hue = modelColor(contributor.color);
  return (
    <Section
      className="contributor-numbers"
      title={
        <span className="row">
          <Swatch color={contributor.color} />
          {contributor.label}
        </span>
      }
      aside={
        <span className="small">
          {isOpen ? 'not merged yet' : isWhole ? '' : `${formatPercent(1 - kept / elements)} trimmed`}
        </span>
      }
    >
      <div className="bar norm-bar" aria-hidden="true">
        <span className="bar-fill" style={{ width: width(norm), background: hue, opacity: 0.35 }} />
        <span
          className="bar-fill"
          style={{ width: width(isOpen ? 0 : (keptNorm ?? rescaledNorm ?? 0)), background: hue }}
        />
      </div>
      {statistics ? (
        <Suspense>
          <ChangeCharts
            statistics={statistics}
            numbers={numbers}
            contributor={contributor}
            mask={isWhole ? undefined : mask}
            isOpen={isOpen}
          />
        </Suspense>
      ) : null}
      <dl className="stack facts">
        {isWhole ? (
          <Fact label="Norm" value={formatReal(norm)} />
        ) : (
          <Fact label="Kept" value={`${formatCount(kept)} of ${formatCount(elements)}`} />
        )}
        {threshold > 0 ? <Fact label="Threshold |τ|" value={formatReal(threshold)} /> : null}
        {keptNorm === null || isWhole ? null : (
          <Fact label="Norm kept" value={`${formatReal(keptNorm)} of ${formatReal(norm)}`} />
        )}
        {energy === null ? null : <Fact label="Kept energy" value={formatPercent(energy)} />}
        {rescaledNorm === undefined || rescaledNorm === keptNorm ? null : (
          <Fact label="Norm after rescaling" value={`${formatReal(rescaledNorm)} of ${formatReal(norm)}`} />
        )}
      </dl>
    </Section>
  );
}

/** A tensor name that may break after its dots. */
function Breakable({ name }: { name: string }) {
  return name.split('.').map((part, i) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: the parts of one name do not move.
    <Fragment key={i}>
      {i > 0 ? (
        <>
          .<wbr />
        </>
      ) : null}
      {part}
    </Fragment>
  ));
}

/** Delta statistics of a tensor, while they are of the recipe's models. */
function useStatisticsOf(name: string): DeltaStatistics | undefined {
  return useStudioState((s) =>
    s.deltaStatistics.key === deltaKey(s)
      ? s.deltaStatistics.tensors.find((t) => t.name === name)
      : undefined,
  );
}

/** The sampled mask of every contributor for the current recipe, by its id. */
function usePredictedMasks(statistics: DeltaStatistics | undefined): ReadonlyMap<string, Uint8Array> {
  const { plan, recipe, models } = useParts('plan', 'recipe', 'models');
  return useMemo(
    () => (statistics ? predictedMasks(statistics, { plan, recipe, models }) : new Map()),
    [statistics, plan, recipe, models],
  );
}

/** Pairwise cosines of a tensor's task vectors: a small table, colored around 0. */
function CosineMatrix({
  labels,
  cosine,
}: {
  labels: readonly Contributor[];
  cosine: readonly (readonly number[])[];
}) {
  const scale = colorScale(metricById('cosine'), -1, 1, useShownTheme());
  return (
    <table className="tensor-runs plain-table" data-numbers>
      <thead>
        <tr>
          <td />
          {labels.map((c) => (
            <th key={c.id} scope="col" title={c.label}>
              <Swatch color={c.color} label={c.label} />
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {labels.map((row, i) => (
          <tr key={row.id}>
            <th scope="row" className="truncate">
              {row.label}
            </th>
            {labels.map((column, j) => {
              const value = cosine[i]?.[j];
              return (
                <td key={column.id}>
                  {value === undefined || i === j ? (
                    <span className="faint">{i === j ? '·' : '–'}</span>
                  ) : (
                    <span className="row nowrap tight">
                      <span
                        className="swatch cosine-chip"
                        style={{ background: scale.color(value) }}
                        aria-hidden="true"
                      />
                      {value.toFixed(2).replace('-', '\u2212')}
                    </span>
                  )}
                </td>
              );
            })}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
