import { formatCount, formatPercent, formatReal, formatSeconds } from '../../formats/quantity';
import { type Cost, Costs } from '../parts/Costs';
import { SavedFiles } from '../parts/SavedFiles';
import { Section } from '../parts/Section';
import { ToolEnd } from '../parts/ToolEnd';
import { choiceName } from '../state/model-choices';
import { useStudioState } from '../studio-context';
import type { Comparison } from './compare-state';
import { DifferenceChart } from '../../tools/difference/DifferenceChart';
import { DifferenceTable } from '../../tools/difference/DifferenceTable';
import { EngineTimes } from '../../tools/difference/EngineTimes';
import { Findings } from '../../tools/difference/Findings';

/** What was found so far: nothing yet, a chart that fills in, or the whole report. */
export function ComparisonResult() {
  const found = useStudioState((s) => s.comparison.found);
  if (!found) {
    return (
      <div className="empty" role="status">
        <strong>No difference measured yet</strong>
        <span>
          Choose two models and press Measure difference: every tensor is measured, from where the weights
          moved most to whether the change looks like a LoRA. Nothing is changed or uploaded.
        </span>
      </div>
    );
  }
  const { report } = found;
  return (
    <>
      <Heading found={found} />
      <ToolEnd
        run={found}
        stopped={`Stopped after ${formatCount(found.tensors.length)} tensors.`}
        stoppedHint="What was measured is shown; no files were kept."
      />
      {report ? <Findings report={report} /> : null}
      {found.tensors.length > 0 || found.planned.length > 0 ? (
        <>
          <DifferenceChart found={found} />
          <DifferenceTable found={found} />
        </>
      ) : null}
      {report?.timing ? <EngineTimes timing={report.timing} /> : null}
      {found.saved ? (
        <Section title="Report files">
          <SavedFiles saved={found.saved} />
        </Section>
      ) : null}
    </>
  );
}

function Heading({ found }: { found: Comparison }) {
  const { report } = found;
  return (
    <header className="tool-head">
      <h2>
        {choiceName(found.base)} → {choiceName(found.finetuned)}
      </h2>
      {report ? (
        <p className="small quiet">
          {formatSeconds(report.seconds)} on {report.engine === 'webgpu' ? 'WebGPU' : 'CPU'} ({report.adapter}
          )
        </p>
      ) : null}
      {report ? <Totals report={report} /> : null}
    </header>
  );
}

function Totals({ report: { total } }: { report: NonNullable<Comparison['report']> }) {
  const items: Cost[] = [
    ['Tensors', formatCount(total.compared), `${formatCount(total.identical)} identical`],
    ['Modified', formatCount(total.modified), 'more than 1 % moved'],
    ['Difference', formatReal(total.relative), '‖Δ‖ / ‖base‖'],
    ['Changed', formatPercent(total.changedRatio), 'of all elements'],
    ['Bits differ', formatPercent(total.bitDifferentRatio), 'of all elements'],
  ];
  return <Costs items={items} />;
}
