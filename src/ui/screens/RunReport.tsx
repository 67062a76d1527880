import { formatBytes, formatCount, formatPercent, formatRate, formatSeconds } from '../../formats/quantity';
import type { LambdaReport } from '../../reports/importance';
import type { MergeReport } from '../../reports/merge';
import { type TimesSpent, timeShares } from '../../reports/time-shares';
import { saveText } from '../local/local-files';
import { Button, DownloadIcon } from '../parts/Button';
import { DialogFrame } from '../parts/DialogFrame';
import { ErrorCard, Message } from '../parts/Message';
import { NumberTable } from '../parts/NumberTable';
import { type Cost, Costs, Section } from '../parts/Section';
import { fileName } from '../state/job-state';
import { currentRun, PHASE_TITLES, type RunState } from '../state/runs';
import { useStudioState } from '../studio-context';

/** The search for λ: perplexity of every value tried, the chosen one marked. */
function LambdaTable({ lambda: { chosen, curve, texts, reused } }: { lambda: LambdaReport }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region is reached by keyboard too.
    <section className="scroll-x" tabIndex={0} aria-label="Perplexity of every λ tried">
      <NumberTable
        heads={['λ', 'mean', ...texts.map(({ id }) => id)]}
        rows={curve.map(({ lambda, perplexity, each }) => ({
          key: lambda,
          chosen: lambda === chosen,
          cells: [lambda, ...[perplexity, ...each].map((value) => value.toFixed(3))],
        }))}
      />
      {reused ? <p className="small quiet">Found before with the same models and settings.</p> : null}
    </section>
  );
}

/** Of the run at work, or the last one: where the time goes, what happened, what was compared. */
export function RunReport() {
  const run = useStudioState(currentRun);
  if (!run) return null;
  const { report } = run;
  return (
    <DialogFrame
      title={run.title}
      about={`${run.methodTitle} · ${statusWords(run)}`}
      foot={
        report ? (
          <Button icon={DownloadIcon} onClick={() => saveReport(run)}>
            Report as JSON
          </Button>
        ) : null
      }
    >
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region is reached by keyboard too. */}
      <section className="dialog-body stack loose run-report" tabIndex={0} aria-label="Report of the run">
        {run.error ? <ErrorCard error={run.error} /> : null}
        {run.notes.map((note) => (
          <Message key={note} tone="warning" title={note} />
        ))}
        {report ? <Costs items={totals(run.planned.length, report)} /> : null}
        <Section title="Where the time goes">
          <NumberTable
            className="stage-key"
            heads={['stage', 'time', 'share']}
            rows={timeShares(timesOf(run)).map(({ stage, seconds, share }) => ({
              key: stage,
              cells: [
                stage,
                formatSeconds(seconds),
                <span key={stage} className="faint">
                  {formatPercent(share)}
                </span>,
              ],
            }))}
          />
        </Section>
        {report?.ahead?.lambda ? (
          <Section title="λ tuning">
            <LambdaTable lambda={report.ahead.lambda} />
          </Section>
        ) : null}
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
  return run.status === 'failed' ? 'failed' : run.paused ? 'paused' : 'canceled';
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

function saveReport({ title, report }: RunState): void {
  saveText(
    JSON.stringify(report, null, 2),
    `${fileName(`${title}-${report!.recipe.mergeMethod}`)}.report.json`,
  );
}
