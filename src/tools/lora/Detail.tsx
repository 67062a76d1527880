import { formatCount, formatReal, formatShape } from '../../formats/quantity';
import { type ExtractedModule, type MeasuredModule, moduleRank } from '../../reports/lora';
import { SpectrumPlot } from '../../ui/charts/LinePlot';
import { Panel } from '../../ui/inspector/Inspector';
import { BrokenName, Fact, Section } from '../../ui/parts/Section';
import { useStudioState } from '../../ui/studio-context';

/** The panel beside the place: the selected module as it was written, else as it was measured. */
export function Detail() {
  const selected = useStudioState((s) => s.view.selected) ?? '';
  const isOne = useStudioState((s) => s.tools.values.lora.subject === 'one');
  const jobs = useStudioState((s) => s.tools.jobs);
  const written = (isOne ? jobs.reshapeLora : jobs.extractLora)?.report?.modules;
  const module = written?.find((m) => isOf(m, selected));
  const measured = jobs.measureLora?.report?.modules.find((m) => isOf(m, selected));
  if (!module && !measured) return null;
  return (
    <Panel>
      {module ? <WrittenNumbers module={module} /> : measured ? <MeasuredNumbers module={measured} /> : null}
    </Panel>
  );
}

/** `model.layers.0.mlp.up_proj` of `model.layers.0.mlp.up_proj.weight`. */
function isOf(module: { module: string }, name: string): boolean {
  return name === module.module || name.startsWith(`${module.module}.`);
}

function Title({ module: m }: { module: ExtractedModule | MeasuredModule }) {
  return (
    <Section title="Module">
      <h3 className="tensor-title">
        <BrokenName name={m.module} />
      </h3>
      <p className="small quiet">
        {m.kind} · {formatShape(m.shape)}
      </p>
    </Section>
  );
}

function WrittenNumbers({ module: m }: { module: ExtractedModule }) {
  return (
    <>
      <Title module={m} />
      <Section title="Spectrum of Δ">
        <SpectrumPlot singularValues={m.singularValues} mark={m.rank} markWords={`rank ${m.rank}`} />
        <dl className="stack facts">
          <Fact label="Rank" value={`${formatCount(m.rank)} of ${formatCount(m.fullRank)}`} />
          <Fact label="‖Δ‖" value={formatReal(m.normDelta)} />
          <Fact
            label="Error left"
            value={m.error === null ? 'not finite' : formatReal(m.error)}
            bad={m.error === null}
          />
          {m.maxError === null ? null : <Fact label="Largest element" value={formatReal(m.maxError)} />}
          <Fact label="Decomposed" value={m.exact ? 'exactly' : 'by a random sketch'} />
        </dl>
      </Section>
    </>
  );
}

function MeasuredNumbers({ module: m }: { module: MeasuredModule }) {
  const mark = moduleRank(m, 0.95) ?? m.values.length;
  return (
    <>
      <Title module={m} />
      <Section title="Spectrum of Δ">
        <SpectrumPlot singularValues={m.values} mark={mark} markWords="95 % of the change" />
        <dl className="stack facts">
          {m.rank === null ? null : <Fact label="Rank" value={formatCount(m.rank)} />}
          {m.scale === null ? null : <Fact label="Scale" value={formatReal(m.scale)} />}
          <Fact label="‖Δ‖" value={formatReal(Math.sqrt(m.squares))} />
        </dl>
      </Section>
    </>
  );
}
