import {
  counted,
  formatCount,
  formatCounted,
  formatPercent,
  formatReal,
  formatShape,
} from '../../formats/quantity';
import { BarStrip, SpectrumPlot } from '../../ui/charts/LinePlot';
import { Panel } from '../../ui/inspector/Inspector';
import { BrokenName, Fact, Section } from '../../ui/parts/Section';
import type { ToolJob } from '../../ui/state/job-state';
import { choiceName } from '../../ui/state/roles';
import { useStudioState } from '../../ui/studio-context';
import { differenceMetric } from './Metrics';
import type { TensorDifference } from './report';

/** The panel beside the place: the selected tensor's differences. */
export function Detail() {
  const selected = useStudioState((s) => s.view.selected);
  const found = useStudioState((s) => s.tools.jobs.compare);
  const tensor = found && tensorsOf(found).find((t) => t.name === selected);
  if (!found || !tensor) return null;
  return (
    <Panel>
      <Numbers
        tensor={tensor}
        pair={`${choiceName(found.request.base)} → ${choiceName(found.request.finetuned)}`}
      />
    </Panel>
  );
}

function tensorsOf({ report, finished }: ToolJob<'compare'>): readonly TensorDifference[] {
  return report?.tensors ?? finished;
}

function Numbers({ tensor: t, pair }: { tensor: TensorDifference; pair: string }) {
  const dtype = t.dtype.base === t.dtype.finetuned ? t.dtype.base : `${t.dtype.base} → ${t.dtype.finetuned}`;
  return (
    <div className="stack roomy difference-detail">
      <div className="stack loose">
        <Section title="Tensor">
          <h3 className="tensor-title">
            <BrokenName name={t.name} />
          </h3>
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
        heights={strip.map((value) => (max > 0 ? value / max : 0))}
        label={`Norms of ${counted(count, 'row')}: from ${formatReal(min)} to ${formatReal(max)}, on average ${formatReal(mean)}`}
        axis={['row 0', `max ${formatReal(max)}`, formatCount(count - 1)]}
      />
    </Section>
  );
}

function Spectrum({ tensor: { lora, shape } }: { tensor: TensorDifference }) {
  if (!lora) return null;
  const isProven = lora.singularValues.length === 0;
  const way = isProven ? 'by blocks of Δ' : lora.exact ? 'exactly' : 'by a random sketch';
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
      {isProven ? null : (
        <SpectrumPlot
          singularValues={lora.singularValues}
          mark={lora.rank95}
          markWords={`95 % at ${bound(lora.rank95, lora.rank95IsBound)}`}
        />
      )}
      <dl className="stack facts">
        <Fact label="Rank that holds 95 %" value={bound(lora.rank95, lora.rank95IsBound)} />
        <Fact label="Effective rank" value={bound(lora.effectiveRank, lora.effectiveRankIsBound)} />
        <Fact label="Full rank" value={formatCount(Math.min(...shape))} />
        <Fact label={isProven ? 'Proven' : 'Decomposed'} value={way} />
      </dl>
    </Section>
  );
}
