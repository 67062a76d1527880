import {
  counted,
  formatCount,
  formatCounted,
  formatPercent,
  formatReal,
  formatShape,
} from '../../formats/quantity';
import { BarStrip, SpectrumPlot } from '../../ui/charts/SpectrumPlot';
import { Panel } from '../../ui/inspector/Inspector';
import { largest } from '../../ui/inspector/ModelOverview';
import { Fact, Section, Shortlist } from '../../ui/parts/Section';
import type { ToolJob } from '../../ui/state/job-state';
import { choiceName } from '../../ui/state/model-choices';
import { useStudioState } from '../../ui/studio-context';
import { differenceMetric } from './Metrics';
import type { TensorDifference } from './report';

/** The panel beside the tab: the selected tensor's differences, or the tensors worth a look. */
export function Detail() {
  const selected = useStudioState((s) => s.view.selected);
  const found = useStudioState((s) => s.tools.jobs.compare);
  const tensor = found && tensorsOf(found).find((t) => t.name === selected);
  return (
    <Panel detail={selected !== null} open={tensor !== undefined}>
      {found && tensor ? (
        <Numbers
          tensor={tensor}
          pair={`${choiceName(found.request.base)} → ${choiceName(found.request.finetuned)}`}
        />
      ) : (
        <Overview tensors={found ? tensorsOf(found) : []} />
      )}
    </Panel>
  );
}

function tensorsOf({ report, finished }: ToolJob<'compare'>): readonly TensorDifference[] {
  return report?.tensors ?? finished;
}

/** Nothing is selected: the tensors worth a look. */
function Overview({ tensors }: { tensors: readonly TensorDifference[] }) {
  return (
    <>
      <Section title="Tensor">
        <p className="quiet">A cell or a row opens here, with its numbers, its rows and its spectrum.</p>
      </Section>
      <Shortlist
        title="Largest relative change"
        tensors={largest(tensors, (t) => t.relative, 5)}
        value={(t) => formatReal(t.relative)}
      />
      <Shortlist
        title="Most weights moved"
        tensors={largest(tensors, (t) => t.changedRatio, 5)}
        value={(t) => formatPercent(t.changedRatio)}
      />
      <Shortlist
        title="Most signs flipped"
        tensors={largest(tensors, (t) => t.signFlipRatio, 5)}
        value={(t) => formatPercent(t.signFlipRatio)}
      />
    </>
  );
}

function Numbers({ tensor: t, pair }: { tensor: TensorDifference; pair: string }) {
  const dtype = t.dtype.base === t.dtype.finetuned ? t.dtype.base : `${t.dtype.base} → ${t.dtype.finetuned}`;
  return (
    <div className="difference-detail">
      <div className="stack loose">
        <Section title="Tensor">
          <h3 className="tensor-title">{t.name}</h3>
          <p className="small quiet">
            {formatShape(t.shape)} · {dtype} · {formatCounted(t.elements, 'element')}
          </p>
        </Section>
        {t.normDelta > 0 && t.shape.length > 1 ? <Rows rows={t.rows} /> : null}
      </div>
      <Section title={pair}>
        <dl className="stack facts">
          <Fact label="‖Δ‖ / ‖base‖" value={formatReal(t.relative)} />
          <Fact label="‖Δ‖" value={formatReal(t.normDelta)} />
          <Fact label="‖base‖" value={formatReal(t.normBase)} />
          <Fact label="‖made from it‖" value={formatReal(t.normFinetuned)} />
          <Fact label="Mean |Δ|" value={formatReal(t.meanAbs)} />
          <Fact label="Max |Δ|" value={formatReal(t.maxAbs)} />
          <Fact label="Changed" value={formatPercent(t.changedRatio)} />
          <Fact label="Sign flips" value={formatPercent(t.signFlipRatio)} />
          <Fact label="Bits differ" value={formatPercent(t.bitDifferentRatio)} />
          <Fact label="Cosine" value={differenceMetric('cosine').format(t.cosine)} />
          {t.stableRank === null ? null : <Fact label="Stable rank" value={formatReal(t.stableRank)} />}
        </dl>
      </Section>
      {t.lora ? <Spectrum tensor={t} /> : null}
      {t.spectrumFailed ? <p className="small tone-bad">{t.spectrumFailed}</p> : null}
    </div>
  );
}

/** ‖Δ‖ of the rows, as a strip of bars from the first to the last. */
function Rows({ rows }: Pick<TensorDifference, 'rows'>) {
  const { count, min, mean, max, strip } = rows;
  return (
    <Section title="‖Δ‖ of the rows">
      <BarStrip
        className="row-strip"
        heights={strip.map((value) => (max > 0 ? value / max : 0))}
        label={`Norms of ${counted(count, 'row')}: from ${formatReal(min)} to ${formatReal(max)}, on average ${formatReal(mean)}`}
        axis={['row 0', `max ${formatReal(max)}`, formatCount(count - 1)]}
      />
    </Section>
  );
}

function Spectrum({ tensor: { lora, shape } }: { tensor: TensorDifference }) {
  if (!lora) return null;
  const bound = (value: number, isBound: boolean) => `${isBound ? '≥ ' : ''}${formatCount(value)}`;
  return (
    <Section
      title="Spectrum of Δ"
      aside={
        <span className="tag" data-tone={lora.potentialLora ? 'ok' : undefined}>
          {lora.potentialLora ? 'looks like a LoRA' : 'not of low rank'}
        </span>
      }
    >
      <SpectrumPlot
        singularValues={lora.singularValues}
        mark={lora.rank95}
        markWords={`95 % at ${bound(lora.rank95, lora.rank95IsBound)}`}
      />
      <dl className="stack facts">
        <Fact label="Rank that holds 95 %" value={bound(lora.rank95, lora.rank95IsBound)} />
        <Fact label="Effective rank" value={bound(lora.effectiveRank, lora.effectiveRankIsBound)} />
        <Fact label="Full rank" value={formatCount(Math.min(...shape))} />
        <Fact label="Decomposed" value={lora.exact ? 'exactly' : 'by a random sketch'} />
      </dl>
    </Section>
  );
}
