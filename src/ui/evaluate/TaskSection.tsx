import '../styles/evaluate.css';
import { useEffect } from 'react';
import { formatAbout, formatCount, formatCounted, formatSeconds } from '../../formats/quantity';
import { pairedValues } from '../../tasks/harness-report';
import { pairedTest } from '../../tasks/statistics';
import { Button } from '../parts/Button';
import { ErrorCard } from '../parts/ErrorCard';
import { LabeledNumber } from '../parts/LabeledNumber';
import { Section } from '../parts/Section';
import { Select } from '../parts/Select';
import { Swatch } from '../parts/Swatch';
import { ToolBar } from '../parts/ToolBar';
import { type EvaluationRow, targetKey } from '../state/evaluation-rows';
import type { TaskRun, TasksSlice } from '../state/evaluation-state';
import { editSlice } from '../state/studio';
import {
  addTaskFiles,
  earlierRun,
  forgetAllScores,
  LONG_SECONDS,
  openTaskList,
  predictionOf,
  predictTasks,
  recallScores,
  runningValue,
  scoredRows,
  scoreTasks,
  toggleTask,
  whyNotScore,
} from '../state/tasks';
import { useStudio, useStudioState } from '../studio-context';

/** Accuracy on tasks, as lm-evaluation-harness scores them: item by item, with a running mean and its error. */
export function TaskSection({ rows }: { rows: readonly EvaluationRow[] }) {
  const studio = useStudio();
  const error = useStudioState((s) => s.tasks.error);
  const last = useStudioState((s) => s.tasks.run);
  const scores = useStudioState((s) => s.tasks.scores);
  const isReady = useStudioState((s) => s.engine.info !== null);
  const scored = scoredRows(rows);
  const run = last ?? earlierRun(scores, scored);
  useEffect(() => {
    void openTaskList(studio);
    if (isReady) void recallScores(studio);
  }, [studio, isReady]);
  return (
    <Section title="Tasks" className="evaluate-section">
      <TaskChoice />
      <TaskActions rows={scored} />
      {error ? <ErrorCard error={error} /> : null}
      {run ? (
        <>
          <TaskTable run={run} rows={scored} />
          {last ? null : (
            <p className="small quiet">
              Scored on an earlier visit.{' '}
              <Button variant="quiet" onClick={() => void forgetAllScores(studio)}>
                Forget it
              </Button>
            </p>
          )}
        </>
      ) : (
        <p className="small quiet">
          Accuracy as lm-evaluation-harness counts it: the most probable choice of each item, or the most
          probable per character. Rows come from the Hub; the sample’s ship with Amalgam.
        </p>
      )}
    </Section>
  );
}

function TaskChoice() {
  const studio = useStudio();
  const { shipped, chosen, own, subset, limit, sampleSeed, fewshot } = useStudioState((s) => s.tasks);
  const subsets = (shipped ?? []).find(
    (task) => chosen.includes(task.name) && task.subsets.length > 0,
  )?.subsets;
  return (
    <>
      <fieldset className="text-choice" aria-label="Tasks to score">
        {[...(shipped ?? []), ...own.map(({ name }) => ({ name, title: name }))].map(({ name, title }) => (
          <span key={name} className="text-toggle" data-on={chosen.includes(name) || undefined}>
            <button
              type="button"
              className="task-toggle"
              aria-pressed={chosen.includes(name)}
              onClick={() => toggleTask(studio, name)}
            >
              {title}
            </button>
          </span>
        ))}
        <label className="button task-file">
          Own task…
          <input
            type="file"
            className="visually-hidden"
            multiple
            accept=".jsonl,.ndjson,.json"
            onChange={(event) => {
              void addTaskFiles(studio, [...(event.target.files ?? [])]);
              event.target.value = '';
            }}
          />
        </label>
      </fieldset>
      <div className="row wrap apart task-settings">
        {subsets ? (
          <div className="row small">
            <span aria-hidden="true">MMLU subset</span>
            <Select
              className="field"
              aria-label="MMLU subset"
              value={subset || (subsets[0] ?? '')}
              options={subsets.map((name) => ({ value: name, label: name.replaceAll('_', ' ') }))}
              onChange={(next) => editSlice(studio, 'tasks', { subset: next })}
            />
          </div>
        ) : null}
        <LabeledNumber
          label="items per task"
          value={limit}
          min={1}
          max={100_000}
          onChange={(next) => editSlice(studio, 'tasks', { limit: next })}
        />
        <div className="row small">
          <Select
            className="field"
            aria-label="Which items"
            value={sampleSeed === null ? 'first' : 'drawn'}
            options={[
              { value: 'first', label: 'the first, as the harness' },
              { value: 'drawn', label: 'drawn at random' },
            ]}
            onChange={(next) => editSlice(studio, 'tasks', { sampleSeed: next === 'drawn' ? 0 : null })}
          />
        </div>
        {sampleSeed === null ? null : (
          <LabeledNumber
            label="seed"
            value={sampleSeed}
            min={0}
            max={2 ** 31}
            onChange={(next) => editSlice(studio, 'tasks', { sampleSeed: next })}
          />
        )}
        <LabeledNumber
          label="few-shot examples"
          value={fewshot}
          min={0}
          max={32}
          onChange={(next) => editSlice(studio, 'tasks', { fewshot: next })}
        />
      </div>
    </>
  );
}

function TaskActions({ rows }: { rows: readonly EvaluationRow[] }) {
  const studio = useStudio();
  const tasks = useStudioState((s) => s.tasks);
  const why = useStudioState(whyNotScore);
  const known = predictionOf(tasks, rows.length);
  return (
    <>
      <div className="row wrap apart">
        <Button className="strong" why={why} onClick={() => void scoreTasks(studio, rows)}>
          Score {formatCounted(rows.length, 'model')}
        </Button>
        <Button why={why} onClick={() => void predictTasks(studio, rows)}>
          How long?
        </Button>
        <span className="small quiet" role="status">
          {known ? predictedWords(known) : ''}
        </span>
      </div>
      <ToolBar kinds={['tasks']} stop="Stop scoring">
        {tasks.predicting
          ? 'The first items show how long it takes.'
          : 'Stopping keeps the items that are done.'}
      </ToolBar>
    </>
  );
}

function predictedWords(known: NonNullable<TasksSlice['predicted']>): string {
  const about = `${formatAbout(known.seconds)} for ${formatCount(known.tokens)} tokens.`;
  return `Predicted by the first items of the first model: ${about}${known.seconds > LONG_SECONDS ? ' Score begins it.' : ''}`;
}

function TaskTable({ run, rows }: { run: TaskRun; rows: readonly EvaluationRow[] }) {
  const now = new Set(rows.map(({ target }) => targetKey(target)));
  return (
    <div className="task-tables">
      {run.tasks.map((info, t) => (
        <div key={info.task} className="task-scroll">
          <table className="plain-table task-table">
            <caption>
              <strong>{info.task}</strong>{' '}
              <span className="small quiet">
                {formatCount(info.effective)} of {formatCounted(info.original, 'item')}
                {info.sampleSeed === null ? '' : `, drawn by seed ${info.sampleSeed}`}
                {info.fewshot > 0 ? `, ${formatCount(info.fewshot)}-shot` : ''}
                {info.dataset === null ? '' : `, ${info.dataset.slice(0, info.dataset.indexOf('@') + 8)}`}
              </span>
            </caption>
            <thead>
              <tr>
                <th scope="col">Model</th>
                {info.metrics.map((metric) => (
                  <th key={metric} scope="col">
                    {metric}
                  </th>
                ))}
                <th scope="col">Items</th>
                <th scope="col">Better than {run.rows[0]?.label}?</th>
                <th scope="col">Tokens/s, time</th>
              </tr>
            </thead>
            <tbody>
              {run.rows.map((row, m) => (
                <tr key={row.id} data-stale={!now.has(row.target) || undefined}>
                  <th scope="row">
                    <span className="row">
                      {row.color === null ? null : <Swatch color={row.color} />}
                      <span className="truncate">{row.label}</span>
                    </span>
                  </th>
                  {info.metrics.map((metric) => (
                    <Metric key={metric} items={run.items[m]?.[t] ?? []} metric={metric} />
                  ))}
                  <td className="mono">{itemsWords(run, m, t)}</td>
                  <td className="small">{m === 0 ? '' : betterWords(run, m, t)}</td>
                  <td className="mono">{speedWords(run, m)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ))}
    </div>
  );
}

/** A mean with its standard error, and both on a track from 0 to 1. */
function Metric({ items, metric }: { items: TaskRun['items'][number][number]; metric: string }) {
  const found = runningValue(items, metric);
  if (!found) return <td className="mono quiet">–</td>;
  const { value, stderr } = found;
  const isShare = metric.startsWith('acc');
  const low = Math.max(0, value - (stderr ?? 0));
  const high = Math.min(1, value + (stderr ?? 0));
  return (
    <td className="mono">
      {value.toFixed(3)}
      {stderr === null ? '' : <span className="quiet"> ± {stderr.toFixed(3)}</span>}
      {isShare ? (
        <span className="bar task-track" aria-hidden="true">
          <span className="task-bar" style={{ left: `${100 * low}%`, width: `${100 * (high - low)}%` }} />
          <span className="task-mean" style={{ left: `${100 * value}%` }} />
        </span>
      ) : null}
    </td>
  );
}

function itemsWords({ items }: TaskRun, m: number, t: number): string {
  const own = items[m]?.[t] ?? [];
  const refused = own.filter((item) => item.refused !== undefined).length;
  return `${formatCount(own.length - refused)}${refused > 0 ? ` (${refused} refused)` : ''}`;
}

/** The paired test of the first metric, on the items that both have. */
function betterWords({ items, tasks: info }: TaskRun, m: number, t: number): string {
  const metric = info[t]?.metrics[0] ?? 'acc';
  const pairs = pairedValues(items[0]?.[t] ?? [], items[m]?.[t] ?? [], metric);
  if (pairs.length < 2) return '';
  const { difference, onlyA, onlyB, p, test } = pairedTest(pairs);
  // a log-likelihood is kept for perplexity: more is better there, too
  const verdict = p >= 0.05 ? 'no significant difference' : difference > 0 ? 'better' : 'worse';
  const how = test === 'mcnemar' ? `${onlyB} gained, ${onlyA} lost` : `${pairs.length} items`;
  return `${verdict}: ${how}, p = ${p.toPrecision(2)}`;
}

function speedWords({ models }: TaskRun, m: number): string {
  const model = models?.[m];
  if (!model || model.seconds <= 0) return '';
  return `${formatCount(Math.round(model.tokens / model.seconds))}, ${formatSeconds(model.seconds)}`;
}
