import { formatCount, formatReal, formatShape } from '../../formats/quantity';
import type { ExtractedModule } from '../../reports/lora';
import { SpectrumPlot } from '../../ui/charts/SpectrumPlot';
import { Panel } from '../../ui/inspector/Inspector';
import { Fact, Section } from '../../ui/parts/Section';
import { useStudioState } from '../../ui/studio-context';

/** The panel beside the place: the selected module. */
export function Detail() {
  const selected = useStudioState((s) => s.view.selected);
  const modules = useStudioState((s) => s.tools.jobs.extractLora?.report?.modules);
  const module = modules?.find((m) => isOf(m, selected ?? ''));
  return module ? (
    <Panel>
      <ModuleNumbers module={module} />
    </Panel>
  ) : null;
}

/** `model.layers.0.mlp.up_proj` of `model.layers.0.mlp.up_proj.weight`. */
function isOf(module: ExtractedModule, name: string): boolean {
  return name === module.module || name.startsWith(`${module.module}.`);
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
        <dl className="stack facts">
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
