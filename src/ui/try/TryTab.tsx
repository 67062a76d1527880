import '../styles/tools.css';
import '../styles/try.css';
import { type ReactNode, useMemo, useState } from 'react';
import { formatBytes, formatCounted, formatSeconds } from '../../formats/quantity';
import type { GenerationSettings } from '../../reports/evaluate';
import { RunsStrip } from '../layers/RunsStrip';
import { type LayersRun, shownRuns, useRuns } from '../layers/runs';
import { Button } from '../parts/Button';
import { ErrorCard } from '../parts/ErrorCard';
import { LabeledNumber } from '../parts/LabeledNumber';
import { LinkButton } from '../parts/LinkButton';
import { Segmented } from '../parts/Segmented';
import { LETTERS, Swatch } from '../parts/Swatch';
import { type EvaluationRow, evaluationRows, targetKey } from '../state/evaluation-rows';
import { editGenerationSettings, emptyColumns, write } from '../state/generation';
import type { GenerationColumn } from '../state/generation-state';
import { cancelJob } from '../state/job';
import { whyNotWrite } from '../state/measure';
import { useStudio, useStudioState } from '../studio-context';

/** Beginnings that the sample family has learned to continue. */
const BEGINNINGS = ['Recipe:', 'Log of the', 'Journal of the', 'Job:', 'Fault:', 'Story: The'];

/** One prompt, continued by base, contributors and the chosen runs, side by side. */
export function TryTab() {
  const recipe = useStudioState((s) => s.recipe);
  const models = useStudioState((s) => s.models);
  const runs = useRuns();
  const [contributors, setContributors] = useState(true);
  const rows = useMemo(
    () => [
      ...evaluationRows(recipe, models).filter(
        ({ id, group }) => group === 'models' && (contributors || id === 'base'),
      ),
      ...shownRuns(runs).map(runRow),
    ],
    [recipe, models, runs, contributors],
  );
  return (
    <div className="screen">
      <RunsStrip runs={runs} />
      <PromptForm rows={rows}>
        <label className="row tight small">
          <input
            type="checkbox"
            checked={contributors}
            onChange={(event) => setContributors(event.target.checked)}
          />
          contributors too
        </label>
      </PromptForm>
      <Columns rows={rows} />
    </div>
  );
}

/** A run among those that answer. */
function runRow({ id, name, place, recipe }: LayersRun): EvaluationRow {
  const label = `${LETTERS[place]} ${name}`;
  return {
    ...{ id: `run ${id}`, group: 'runs', label, title: name, color: null, place },
    ...{ target: { recipe }, method: null, lambda: '', current: true },
  };
}

function PromptForm({ rows, children }: { rows: readonly EvaluationRow[]; children: ReactNode }) {
  const studio = useStudio();
  const settings = useStudioState((s) => s.generation.settings);
  const writing = useStudioState((s) => (s.job?.kind === 'generation' ? s.job : null));
  const why = useStudioState(whyNotWrite);
  const sample = useStudioState((s) => s.models.find((m) => m.ref === s.recipe.base)?.origin === 'sample');
  const start = () => void write(studio, rows);
  return (
    <div className="stack">
      <textarea
        className="field prompt"
        rows={2}
        aria-label="Prompt"
        placeholder={
          settings.chat ? 'A message to the model, in its chat template' : 'The beginning of a text'
        }
        value={settings.prompt}
        onChange={(event) => editGenerationSettings(studio, { prompt: event.target.value })}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
          event.preventDefault();
          start();
        }}
      />
      {sample ? (
        <div className="row wrap apart">
          <span className="small quiet">Try</span>
          {BEGINNINGS.map((beginning) => (
            <LinkButton
              key={beginning}
              className="small"
              onClick={() => editGenerationSettings(studio, { prompt: beginning })}
            >
              {beginning}
            </LinkButton>
          ))}
        </div>
      ) : null}
      <div className="row wrap apart generate-settings">
        <Segmented<'text' | 'chat'>
          label="What the prompt is"
          value={settings.chat ? 'chat' : 'text'}
          options={[
            { value: 'text', label: 'Text' },
            { value: 'chat', label: 'Chat' },
          ]}
          onChange={(next) => editGenerationSettings(studio, { chat: next === 'chat' })}
        />
        <Setting name="maxTokens" label="tokens" min={1} max={4096} />
        <Setting name="temperature" label="temperature" min={0} max={2} step={0.1} />
        <Setting name="topP" label="top-p" min={0.05} max={1} step={0.05} />
        <Setting name="seed" label="seed" min={0} max={2 ** 32 - 1} />
        {children}
        {writing === null ? (
          <Button className="strong" why={why} onClick={start}>
            Generate
          </Button>
        ) : (
          <Button why={writing.canceling ? 'Canceling…' : null} onClick={() => void cancelJob(studio)}>
            Stop generating
          </Button>
        )}
      </div>
    </div>
  );
}

interface SettingProps {
  name: Exclude<keyof GenerationSettings, 'prompt' | 'chat'>;
  label: string;
  min: number;
  max: number;
  step?: number;
}

function Setting({ name, ...field }: SettingProps) {
  const studio = useStudio();
  const value = useStudioState((s) => s.generation.settings[name]);
  return (
    <LabeledNumber
      {...field}
      value={value}
      onChange={(next) => editGenerationSettings(studio, { [name]: next })}
    />
  );
}

/** The latest texts, else the empty columns of the models that would write. */
function Columns({ rows }: { rows: readonly EvaluationRow[] }) {
  const columns = useStudioState((s) => s.generation.columns);
  const written = useStudioState((s) => s.generation.written);
  const settings = useStudioState((s) => s.generation.settings);
  const empty = useMemo(() => emptyColumns(rows), [rows]);
  const targets = useMemo(() => new Set(empty.map((c) => targetKey(c.target))), [empty]);
  const shown = written ? columns : empty;
  const { prompt, chat } = written ?? settings;
  return (
    <div className="written">
      {shown.map((column) => (
        <Column
          key={column.id}
          column={column}
          prompt={chat ? `${prompt}\n\n` : prompt}
          begun={written !== null}
          stale={!targets.has(targetKey(column.target))}
        />
      ))}
    </div>
  );
}

interface ColumnProps {
  column: GenerationColumn;
  prompt: string;
  begun: boolean;
  stale: boolean;
}

function Column({ column, prompt, begun, stale }: ColumnProps) {
  return (
    <article className="written-column panel" data-stale={stale || undefined} aria-label={column.label}>
      <h3 className="row">
        {column.color === null ? null : <Swatch color={column.color} />}
        <span className="truncate" title={column.label}>
          {column.label}
        </span>
      </h3>
      {column.error ? (
        <ErrorCard error={column.error} />
      ) : (
        <p className="written-text" aria-busy={column.status === 'writing'}>
          <span className="faint">{prompt}</span>
          {column.text}
          {column.status === 'writing' ? <span className="caret" aria-hidden="true" /> : null}
        </p>
      )}
      <p className="small faint written-foot">
        {stale ? 'The recipe has changed since. ' : ''}
        {begun ? footWords(column) : 'Nothing generated yet.'}
      </p>
    </article>
  );
}

function footWords({ status, report, progress }: GenerationColumn): string {
  if (report) {
    const end = report.ended === 'stop' ? 'ended its text' : 'stopped at the limit';
    return `${formatCounted(report.ids.length, 'token')} in ${formatSeconds(report.seconds)}, ${end}; at most ${formatBytes(report.peakBytes)} on the device`;
  }
  switch (status) {
    case 'waiting':
      return 'Waiting for its turn';
    case 'writing':
      return progress
        ? `${formatCounted(progress.done, 'token')}, ${progress.rate.toFixed(1)} a second`
        : 'Opening…';
    case 'canceled':
      return 'Stopped';
    case 'failed':
      return 'It could not be run';
    case 'done':
      return '';
  }
}
