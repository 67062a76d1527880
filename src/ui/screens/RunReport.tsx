import {
  formatBytes,
  formatCount,
  formatCounted,
  formatPercent,
  formatRate,
  formatSeconds,
} from '../../formats/quantity';
import type { LambdaReport } from '../../reports/importance';
import type { MergeReport } from '../../reports/merge';
import { type TimesSpent, timeShares } from '../../reports/time-shares';
import { LinePlot } from '../charts/LinePlot';
import { DialogFrame } from '../parts/DialogFrame';
import { ExportMenu } from '../parts/ExportMenu';
import { ErrorCard, Message } from '../parts/Message';
import { HashDigits } from '../parts/SavedFiles';
import { type Cost, Costs, Section } from '../parts/Section';
import { currentRun, type FinishedRun, isFinished, PHASE_TITLES, type RunState } from '../state/runs';
import { noticed, setView } from '../state/studio';
import { useStudio, useStudioState } from '../studio-context';

/** The search for λ: perplexity over the values tried, the chosen one marked. The table has the same values. */
function LambdaPlot({ lambda }: { lambda: LambdaReport }) {
  const { chosen, curve } = lambda;
  const points = curve
    .filter((tried) => Number.isFinite(tried.perplexity))
    .map(({ lambda: x, perplexity: y }) => ({ x, y, words: `λ ${x}: perplexity ${y.toFixed(3)}` }));
  const best = points.find(({ x }) => x === chosen);
  const last = points.at(-1);
  if (!best || !last) return null;
  const highest = Math.max(...points.map(({ y }) => y));
  return (
    <figure className="stack tight small lambda">
      <LinePlot
        {...{ width: 560, height: 200, left: 46, points, best }}
        along={[0, last.x]}
        upward={[best.y, Math.max(highest, best.y * 1.001)]}
        wide={highest > 10 * best.y}
        title="λ"
        label={`Perplexity over λ, ${formatCounted(points.length, 'value')} from ${points[0]!.x} to ${last.x}; chosen ${best.words}`}
      />
      <figcaption>
        Chosen: <strong>{best.words}</strong>, the geometric mean over{' '}
        {lambda.texts.map((t) => `${t.id} (${t.calibration})`).join(', ')}
        {lambda.reused ? '; found before with the same models and settings' : ''}.
      </figcaption>
      <details>
        <summary>As a table</summary>
        <LambdaTable lambda={lambda} />
      </details>
    </figure>
  );
}

function LambdaTable({ lambda: { chosen, curve, texts } }: { lambda: LambdaReport }) {
  const heads = ['mean', ...texts.map(({ id }) => id)];
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region is reached by keyboard too.
    <section className="scroll-x" tabIndex={0} aria-label="Perplexity of every λ tried">
      <table className="plain-table" data-numbers>
        <thead>
          <tr>
            {['λ', ...heads].map((head) => (
              <th key={head} scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {curve.map(({ lambda, perplexity, each }) => (
            <tr key={lambda} data-chosen={lambda === chosen || undefined}>
              <th scope="row">{lambda}</th>
              {[perplexity, ...each].map((value, i) => (
                <td key={heads[i]}>{value.toFixed(3)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** Of the run at work, or the last one: where the time goes, what happened, what was compared. */
export function RunReport() {
  const studio = useStudio();
  const run = useStudioState(currentRun);
  const close = () => setView(studio, { runReport: false });
  if (!run) return null;
  const { report } = run;
  return (
    <DialogFrame
      title={run.title}
      about={`${run.methodTitle} · ${statusWords(run)}`}
      foot={isFinished(run) ? <RunExport run={run} /> : null}
      onClose={close}
    >
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region is reached by keyboard too. */}
      <section className="dialog-body stack loose run-report" tabIndex={0} aria-label="Report of the run">
        {run.error ? <ErrorCard error={run.error} /> : null}
        {run.notes.map((note) => (
          <Message key={note} tone="warning" title={note} />
        ))}
        {report ? <Costs items={totals(run.planned.length, report)} /> : null}
        <Section title="Where the time goes">
          <TimeBar {...timesOf(run)} />
        </Section>
        {report?.ahead?.lambda ? (
          <Section title="λ tuning">
            <LambdaPlot lambda={report.ahead.lambda} />
          </Section>
        ) : null}
        {report ? <Inputs report={report} /> : null}
      </section>
    </DialogFrame>
  );
}

/** Of the finished merge, else of the one at work. */
function timesOf({ report, progress }: RunState): TimesSpent {
  return report ?? progress ?? { stages: { read: 0, upload: 0, compute: 0, readback: 0, write: 0 } };
}

function statusWords(run: RunState): string {
  if (run.status === 'running')
    return run.progress ? PHASE_TITLES[run.progress.phase].toLowerCase() : 'starting';
  if (run.status === 'done') return `done in ${formatSeconds(run.report?.seconds ?? 0)}`;
  return run.status === 'failed' ? 'failed' : stopped(run).toLowerCase();
}

function stopped(run: RunState): string {
  return run.paused ? 'Paused' : 'Canceled';
}

function totals(tensors: number, { seconds, shards, peakBytes, engine, adapter }: MergeReport): Cost[] {
  const written = shards.reduce((sum, s) => sum + s.bytes, 0);
  return [
    ['Tensors', formatCount(tensors), 'all of them'],
    ['Bytes', formatBytes(written), 'of weights written'],
    ['Throughput', formatRate(written / Math.max(seconds, 1e-3)), 'on average'],
    ['Time', formatSeconds(seconds), 'in total'],
    ['Memory', formatBytes(peakBytes), 'at most, for tiles'],
    ['Engine', engine === 'webgpu' ? 'WebGPU' : 'CPU', adapter],
  ];
}

function Inputs({ report }: { report: NonNullable<RunState['report']> }) {
  return (
    <Section title="Inputs">
      <ul className="files ruled panel">
        {report.inputs.map((input) => (
          <li key={`${input.id} ${input.file}`}>
            <span className="truncate">
              {input.id} <span className="faint">/ {input.file}</span>
            </span>
            <HashDigits hash={input.hash} length={16} />
          </li>
        ))}
      </ul>
    </Section>
  );
}

/** All of the time of a run as one stacked bar with its numbers below. */
function TimeBar(times: TimesSpent) {
  const shares = timeShares(times);
  return (
    <div className="stack">
      <div className="row bar stage-bar" aria-hidden="true">
        {shares.map(({ stage, share }) => (
          <span
            key={stage}
            className="stage-part"
            style={{ width: `${share * 100}%`, background: `var(--stage-${stage})` }}
          />
        ))}
      </div>
      <dl className="columns stage-key">
        {shares.map(({ stage, seconds, share }) => (
          <div key={stage}>
            <dt className="row small quiet">
              <span className="swatch" style={{ background: `var(--stage-${stage})` }} aria-hidden="true" />
              {stage}
            </dt>
            <dd>
              {formatSeconds(seconds)} <span className="faint">{formatPercent(share)}</span>
            </dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

const CHOICES = [
  { value: 'html', label: 'Report as HTML', hint: 'one file: recipe, hashes, times, charts' },
  { value: 'json', label: 'Report as JSON', hint: 'in full precision' },
  { value: 'csv', label: 'Table as CSV', hint: 'every number of every tensor' },
] as const;

/** Saves the report of a finished run. */
function RunExport({ run }: { run: FinishedRun }) {
  const studio = useStudio();
  const save = async (kind: (typeof CHOICES)[number]['value']) => {
    const { exportRun } = await import('../export/exported-files');
    exportRun(kind, run);
  };
  return (
    <ExportMenu
      label={`Export the report of ${run.title}`}
      choices={CHOICES}
      onChoose={(kind) => void noticed(studio, () => save(kind))}
    />
  );
}
