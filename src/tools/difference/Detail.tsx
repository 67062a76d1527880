import { formatCount, formatCounted, formatPercent, formatReal, formatShape } from '../../formats/quantity';
import type { ExtractedModule, TensorDifference } from './report';
import { SpectrumPlot } from '../../ui/charts/SpectrumPlot';
import { largest } from '../../ui/inspector/model-overview';
import { Fact } from '../../ui/parts/Fact';
import { Section } from '../../ui/parts/Section';
import { Shortlist } from '../../ui/parts/Shortlist';
import { choiceName } from '../../ui/state/model-choices';
import { useStudioState } from '../../ui/studio-context';
import { differenceMetric } from './difference-metrics';

/** The panel beside the Compare tab: the selected tensor's differences, or a word on what selecting does. */
export function DifferenceDetail() {
  const selected = useStudioState((s) => s.view.selected);
  const mode = useStudioState((s) => s.comparison.mode);
  const tensor = useStudioState((s) => s.comparison.found?.tensors.find((t) => t.name === s.view.selected));
  const planned = useStudioState((s) => s.comparison.found?.planned.find((t) => t.name === s.view.selected));
  const pair = useStudioState((s) =>
    s.comparison.found
      ? `${choiceName(s.comparison.found.base)} → ${choiceName(s.comparison.found.finetuned)}`
      : '',
  );
  const module = useStudioState((s) =>
    s.comparison.extraction?.report?.modules.find((m) => isOf(m, s.view.selected ?? '')),
  );
  if (mode === 'extract') {
    return module ? <ModuleNumbers module={module} /> : <Hint what="A module of the adapter" />;
  }
  if (tensor) return <Numbers tensor={tensor} pair={pair} />;
  if (selected !== null && planned) {
    return (
      <Section title="Tensor">
        <h3 className="tensor-title">{selected}</h3>
        <p className="small quiet">
          {formatShape(planned.shape)} · {planned.dtype}. Not compared, or not yet.
        </p>
      </Section>
    );
  }
  return <Overview />;
}

/** Nothing is selected: the tensors worth a look. */
function Overview() {
  const tensors = useStudioState((s) => s.comparison.found?.tensors) ?? [];
  return (
    <>
      <Hint what="A cell or a row" />
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

/** `model.layers.0.mlp.up_proj` of `model.layers.0.mlp.up_proj.weight`. */
function isOf(module: ExtractedModule, name: string): boolean {
  return name === module.module || name.startsWith(`${module.module}.`);
}

function Hint({ what }: { what: string }) {
  return (
    <Section title="Tensor">
      <p className="quiet">{what} opens here, with its numbers, its rows and its spectrum.</p>
    </Section>
  );
}

function Numbers({ tensor: t, pair }: { tensor: TensorDifference; pair: string }) {
  const dtype = t.dtype.base === t.dtype.finetuned ? t.dtype.base : `${t.dtype.base} → ${t.dtype.finetuned}`;
  return (
    <div className="difference-detail">
      <div className="difference-part">
        <Section title="Tensor">
          <h3 className="tensor-title">{t.name}</h3>
          <p className="small quiet">
            {formatShape(t.shape)} · {dtype} · {formatCounted(t.elements, 'element')}
          </p>
        </Section>
        {t.normDelta > 0 && t.shape.length > 1 ? <Rows rows={t.rows} /> : null}
      </div>
      <Section title={pair || 'Difference'}>
        <dl className="facts">
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
      <figure className="row-strip">
        <svg
          viewBox={`0 0 ${strip.length} 40`}
          preserveAspectRatio="none"
          role="img"
          aria-label={`Norms of ${count} rows: from ${formatReal(min)} to ${formatReal(max)}, on average ${formatReal(mean)}`}
        >
          {strip.map((value, i) => (
            <rect
              // biome-ignore lint/suspicious/noArrayIndexKey: the place among the rows is what a bar is.
              key={i}
              className="spectrum-kept"
              x={i + 0.05}
              width={0.9}
              y={40 - (max > 0 ? (40 * value) / max : 0)}
              height={max > 0 ? (40 * value) / max : 0}
            />
          ))}
        </svg>
        <div className="axis" aria-hidden="true">
          <span>row 0</span>
          <span>max {formatReal(max)}</span>
          <span>{formatCount(count - 1)}</span>
        </div>
      </figure>
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
      <dl className="facts">
        <Fact label="Rank that holds 95 %" value={bound(lora.rank95, lora.rank95IsBound)} />
        <Fact label="Effective rank" value={bound(lora.effectiveRank, lora.effectiveRankIsBound)} />
        <Fact label="Full rank" value={formatCount(Math.min(...shape))} />
        <Fact label="Decomposed" value={lora.exact ? 'exactly' : 'by a random sketch'} />
      </dl>
    </Section>
  );
}

function ModuleNumbers({ module: m }: { module: ExtractedModule }) {
  return (
    <>
      <Section title="Module">
        <h3 className="tensor-title">{m.module}</h3>
        <p className="small quiet">
          {m.kind} · {formatShape(m.shape)}
        </p>
      </Section>
      <Section title="Spectrum of Δ">
        <SpectrumPlot singularValues={m.singularValues} mark={m.rank} markWords={`rank ${m.rank}`} />
        <dl className="facts">
          <Fact label="Rank" value={`${formatCount(m.rank)} of ${formatCount(m.fullRank)}`} />
          <Fact label="‖Δ‖" value={formatReal(m.normDelta)} />
          <Fact
            label="Error left"
            value={m.error === null ? 'not finite' : formatReal(m.error)}
            bad={m.error === null}
          />
          <Fact label="Largest element" value={m.maxError === null ? 'not finite' : formatReal(m.maxError)} />
          <Fact label="Decomposed" value={m.exact ? 'exactly' : 'by a random sketch'} />
        </dl>
      </Section>
    </>
  );
}
