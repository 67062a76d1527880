import { formatCount, formatPercent, formatReal, formatSeconds } from '../../formats/quantity';
import { Button } from '../../ui/parts/Button';
import { type Cost, Costs } from '../../ui/parts/Costs';
import { OpenModels } from '../../ui/parts/ModelSelect';
import { OptionsForm, optionsProblem } from '../../ui/parts/OptionsForm';
import { PairPicker, usePair } from '../../ui/parts/PairPicker';
import { Problem } from '../../ui/parts/Problem';
import { SavedFiles } from '../../ui/parts/SavedFiles';
import { SaveTo } from '../../ui/parts/SaveTo';
import { Section } from '../../ui/parts/Section';
import { ToolBar } from '../../ui/parts/ToolBar';
import { ToolEnd } from '../../ui/parts/ToolEnd';
import { whyNoTool } from '../../ui/state/job';
import { choiceName, fileNameOf } from '../../ui/state/model-choices';
import { pairProblem } from '../../ui/state/pair';
import { whyNotSaved } from '../../ui/state/saved-output';
import { beginTool, editTool } from '../../ui/state/tool-jobs';
import type { ToolJob } from '../../ui/state/tool-state';
import { useStudio, useStudioState } from '../../ui/studio-context';
import '../../ui/styles/tools.css';
import { DifferenceChart } from './DifferenceChart';
import { DifferenceTable } from './DifferenceTable';
import { Findings } from './Findings';
import { compareOptions } from './options';
import type { CompareReport, EngineTiming } from './report';

/** Two models: how they differ, tensor by tensor. */
export function Screen() {
  const found = useStudioState((s) => s.tools.jobs.compare);
  return (
    <div className="screen tool-screen">
      <PairPicker />
      <OpenModels />
      <Form />
      <ToolBar kinds={['compare']} />
      {found ? (
        <Result found={found} />
      ) : (
        <div className="empty" role="status">
          <strong>No difference measured yet</strong>
          <span>
            Choose two models and press Measure difference: every tensor is measured, from where the weights
            moved most to whether the change looks like a LoRA. Nothing is changed or uploaded.
          </span>
        </div>
      )}
    </div>
  );
}

/** What is measured, where the report goes, and the button. */
function Form() {
  const studio = useStudio();
  const values = useStudioState((s) => s.tools.values.difference);
  const busy = useStudioState(whyNoTool);
  const unsaved = useStudioState(whyNotSaved);
  const pair = usePair();
  const { base, finetuned } = pair;
  const problem = optionsProblem(compareOptions, values);
  const compare = () => {
    if (base === null || finetuned === null) return;
    const { threshold, top, loraAnalysis, timeEngines } = values;
    const asked = { base, finetuned, threshold, top, loraAnalysis, timeEngines };
    const name = fileNameOf('compare', base, finetuned);
    const files = ({ files }: CompareReport) => files.map((file) => ({ name: file }));
    // without storage there is still a comparison, only no files
    void beginTool(studio, 'compare', asked, unsaved === null ? { name, files } : undefined);
  };
  return (
    <div className="tool-form">
      <OptionsForm
        options={compareOptions}
        values={values}
        onChange={(change) => editTool(studio, 'difference', change)}
      />
      <Problem>{problem}</Problem>
      <div className="row wrap tool-actions">
        <Button className="strong" why={busy ?? pairProblem(pair) ?? problem} onClick={compare}>
          Measure difference
        </Button>
        <SaveTo what="Report files to" />
      </div>
      {unsaved ? <p className="small quiet">{unsaved} The comparison works without report files.</p> : null}
    </div>
  );
}

/** What was found so far: a chart that fills in, or the whole report. */
function Result({ found }: { found: ToolJob<'compare'> }) {
  const { report } = found;
  return (
    <>
      <Heading found={found} />
      <ToolEnd
        run={found}
        stopped={`Stopped after ${formatCount(found.finished.length)} tensors.`}
        stoppedHint="What was measured is shown; no files were kept."
      />
      {report ? <Findings report={report} /> : null}
      {found.status === 'failed' && found.finished.length === 0 ? null : (
        <>
          <DifferenceChart found={found} />
          <DifferenceTable found={found} />
        </>
      )}
      {report?.timing ? <EngineTimes timing={report.timing} /> : null}
      {found.saved ? (
        <Section title="Report files">
          <SavedFiles saved={found.saved} />
        </Section>
      ) : null}
    </>
  );
}

function Heading({ found }: { found: ToolJob<'compare'> }) {
  const { report } = found;
  return (
    <header className="tool-head">
      <h2>
        {choiceName(found.request.base)} → {choiceName(found.request.finetuned)}
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

function Totals({ report: { total } }: { report: CompareReport }) {
  const items: Cost[] = [
    ['Tensors', formatCount(total.compared), `${formatCount(total.identical)} identical`],
    ['Modified', formatCount(total.modified), 'more than 1 % moved'],
    ['Difference', formatReal(total.relative), '‖Δ‖ / ‖base‖'],
    ['Changed', formatPercent(total.changedRatio), 'of all elements'],
    ['Bits differ', formatPercent(total.bitDifferentRatio), 'of all elements'],
  ];
  return <Costs items={items} />;
}

/** Both engines over the same tensors: seconds as bars, the speed-up, and by how much they disagree. */
function EngineTimes({ timing }: { timing: EngineTiming }) {
  const { webgpu, cpu, speedUp, maxDisagreement } = timing;
  const longest = Math.max(webgpu, cpu, 1e-9);
  const faster = speedUp >= 1;
  return (
    <Section title="Tensor by tensor" className="engine-times">
      <dl>
        {(
          [
            ['WebGPU', webgpu],
            ['CPU, WebAssembly', cpu],
          ] as const
        ).map(([name, seconds]) => (
          <div key={name} className="engine-time">
            <dt>{name}</dt>
            <dd className="engine-bar" aria-hidden="true">
              <span className="bar-fill" style={{ width: `${(100 * seconds) / longest}%` }} />
            </dd>
            <dd className="numeric">{formatSeconds(seconds)}</dd>
          </div>
        ))}
      </dl>
      <p>
        {faster ? 'WebGPU' : 'The CPU'} is {formatReal(faster ? speedUp : 1 / speedUp)} times as fast here.{' '}
        {maxDisagreement === 0
          ? 'Both engines agree to the last bit.'
          : `Their sums differ by at most ${formatReal(maxDisagreement)} of their size.`}
      </p>
      <p className="small quiet">Upload, kernels and readback; reading the files is not counted.</p>
    </Section>
  );
}
