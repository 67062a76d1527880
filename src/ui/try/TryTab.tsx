import '../styles/tools.css';
import '../styles/try.css';
import { Fragment, lazy, type ReactNode, Suspense, useEffect, useMemo, useState } from 'react';
import { formatCounted, formatPercent, formatSeconds } from '../../formats/quantity';
import { memoryWords, type WrittenToken } from '../../reports/evaluate';
import { RunsStrip } from '../layers/RunsStrip';
import { type LayersRun, shownRuns, useRuns } from '../layers/runs';
import { Check } from '../parts/fields';
import { REST_MS, useDebounced } from '../parts/hooks';
import { ErrorCard } from '../parts/Message';
import { Cut, LETTERS, Swatch } from '../parts/Section';
import { type EvaluationRow, targetKey } from '../state/evaluation-rows';
import {
  answeringModels,
  columnsOf,
  editGenerationSettings,
  follow,
  memoryKey,
  memoryRequest,
  setFollowing,
  whyNotWrite,
  write,
} from '../state/generation';
import type { GenerationColumn } from '../state/generation-state';
import { isRecipeOpen } from '../state/named-models';
import type { StudioWorker } from '../state/studio';
import { useAnswer, useParts, useSlice, useStudio, useStudioState } from '../studio-context';
import { GenerationForm } from './GenerationForm';

const BlindTest = lazy(() => import('./BlindTest').then((m) => ({ default: m.BlindTest })));
const PerplexityCourse = lazy(() =>
  import('./PerplexityCourse').then((m) => ({ default: m.PerplexityCourse })),
);

/** One prompt, continued by base, contributors and the chosen runs, side by side; the recipe's run follows its sliders. */
export function TryTab() {
  const { recipe, models } = useParts('recipe', 'models');
  const runs = useRuns();
  const isBlind = useStudioState((s) => s.generation.blind.open);
  const [contributors, setContributors] = useState(false);
  const rows = useMemo(
    () => [...answeringModels({ recipe, models }, contributors), ...shownRuns(runs).map(runRow)],
    [recipe, models, runs, contributors],
  );
  return (
    <div className="stack loose screen">
      <RunsStrip runs={runs} />
      {isBlind ? (
        <Suspense>
          <BlindTest />
        </Suspense>
      ) : (
        <OnePrompt rows={rows}>
          <Check label="contributors too" checked={contributors} onChange={setContributors} />
        </OnePrompt>
      )}
    </div>
  );
}

/** Writes what is out of date again once the sliders rest. */
function useFollowing(rows: readonly EvaluationRow[]): void {
  const studio = useStudio();
  const targets = rows.map(({ target }) => targetKey(target)).join('\n');
  const settled = useDebounced(targets, REST_MS);
  const why = useStudioState(whyNotWrite);
  const isFollowing = useStudioState((s) => s.generation.follows);
  // a change that costs less than a token is heard while the slider moves
  const isCheap = useStudioState(
    ({ generation: { turnSeconds } }) => turnSeconds !== null && turnSeconds < TOKEN_SECONDS,
  );
  // biome-ignore lint/correctness/useExhaustiveDependencies: an engine that is free again, and the switch, are events too
  useEffect(() => {
    if (targets === settled || isCheap) void follow(studio, rows);
  }, [studio, rows, targets, settled, why, isFollowing, isCheap]);
}

/** Memory of the texts in words, once the models are open. */
function useMemory(rows: readonly EvaluationRow[]): string {
  const { store } = useStudio();
  const settled = useDebounced(
    useStudioState((s) => memoryKey(rows, s)),
    REST_MS,
  );
  const isOpen = useStudioState(isRecipeOpen);
  // a model that cannot be run says so when it is asked for a text
  const words = (worker: StudioWorker) =>
    worker.memoryOf(memoryRequest(rows, store.getState())).then(memoryWords, () => '');
  return useAnswer('', async (worker) => (isOpen ? words(worker) : ''), [settled, isOpen])[0];
}

const TOKEN_SECONDS = 0.1;

/** A run among those that answer. */
function runRow({ id, name, place, recipe }: LayersRun): EvaluationRow {
  const label = `${LETTERS[place]} ${name}`;
  return {
    ...{ id: `run ${id}`, group: 'runs', label, title: name, color: null, place },
    ...{ target: { recipe }, method: null, lambda: '', current: true },
  };
}

/** @param children more that is chosen */
function OnePrompt({ rows, children }: { rows: readonly EvaluationRow[]; children: ReactNode }) {
  const studio = useStudio();
  const { settings, follows } = useSlice('generation', 'settings', 'follows');
  const why = useStudioState(whyNotWrite);
  useFollowing(rows);
  const memory = useMemory(rows);
  const start = () => void write(studio, rows);
  const type = (prompt: string) => editGenerationSettings(studio, { prompt });
  return (
    <>
      <GenerationForm
        begin="Generate"
        why={why}
        onBegin={start}
        memory={memory}
        prompt={
          <div className="stack tight grow">
            <textarea
              className="field mono prompt"
              rows={2}
              aria-label="Prompt"
              placeholder={
                settings.chat ? 'A message to the model, in its chat template' : 'The beginning of a text'
              }
              value={settings.prompt}
              onChange={(event) => type(event.target.value)}
              onKeyDown={(event) => {
                if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
                event.preventDefault();
                start();
              }}
            />
          </div>
        }
      >
        {children}
        <Check label="follow the sliders" checked={follows} onChange={(next) => setFollowing(studio, next)} />
      </GenerationForm>
      <div className="answers">
        <Columns rows={rows} />
        <Suspense>
          <PerplexityCourse />
        </Suspense>
      </div>
    </>
  );
}

/** The latest texts, else the empty columns of the models that would write. */
function Columns({ rows }: { rows: readonly EvaluationRow[] }) {
  const { columns, written, settings } = useSlice('generation', 'columns', 'written', 'settings');
  const { prompt, chat } = written ?? settings;
  const shown = columnsOf(rows, { columns, written });
  return (
    <div className="stack">
      {shown.some(({ report }) => report?.tokens.some(isTinted)) ? (
        <p className="small quiet">
          Tinted words are <mark data-tint="3">more</mark> or <mark data-tint="-3">less</mark> probable here
          than in the base.
        </p>
      ) : null}
      <div className="columns written">
        {shown.map((column) => (
          <Column
            key={column.id}
            column={column}
            prompt={chat ? `${prompt}\n\n` : prompt}
            begun={written !== null}
          />
        ))}
      </div>
    </div>
  );
}

interface ColumnProps {
  column: GenerationColumn;
  prompt: string;
  begun: boolean;
}

function Column({ column, prompt, begun }: ColumnProps) {
  const { stale, status, report, text, turns } = column;
  return (
    <article className="stack written-column panel" data-stale={stale || undefined} aria-label={column.label}>
      <h3 className="row">
        {column.color === null ? null : <Swatch color={column.color} />}
        <Cut text={column.label} />
      </h3>
      {column.error ? (
        <ErrorCard error={column.error} />
      ) : (
        <p className="written-text" aria-busy={status === 'writing'}>
          <span className="faint">{prompt}</span>
          {report && turns.length === 0 ? (
            <Tokens tokens={report.tokens} />
          ) : (
            <Turned text={text} turns={turns} />
          )}
          {status === 'writing' ? <span className="caret" aria-hidden="true" /> : null}
        </p>
      )}
      <p className="small faint written-foot">{begun ? footWords(column) : 'Nothing generated yet.'}</p>
    </article>
  );
}

const TURNED = 'the recipe changed here';

/** A text with a mark wherever it went on with a changed recipe. */
function Turned({ text, turns }: Pick<GenerationColumn, 'text' | 'turns'>) {
  return turns.concat(text.length).map((end, i) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: a text's pieces keep their places
    <Fragment key={i}>
      {i > 0 ? <span className="turn" role="img" aria-label={TURNED} title={TURNED} /> : null}
      {text.slice(turns[i - 1] ?? 0, end)}
    </Fragment>
  ));
}

/** Tokens whose probability differs from the base's are tinted, and tell both. */
function Tokens({ tokens }: { tokens: readonly WrittenToken[] }) {
  return tokens.map((token, i) => {
    const { text, probability, against } = token;
    if (!isTinted(token)) return text;
    const words = `${formatPercent(probability)} here, ${formatPercent(against!)} in the base`;
    return (
      // biome-ignore lint/suspicious/noArrayIndexKey: a text's tokens keep their places
      <mark key={i} title={words} data-tint={tintOf(token)}>
        {text}
      </mark>
    );
  });
}

/** Ratios of probabilities from which a token is tinted, and tinted more. */
const TINTS = [2, 4, 10];

/** −3 … 3: how much more probable a token is than in the base. */
function tintOf({ probability, against }: WrittenToken): number {
  if (against === undefined) return 0;
  const ratio = Math.max(probability, 1e-12) / Math.max(against, 1e-12);
  const steps = TINTS.filter((least) => Math.max(ratio, 1 / ratio) >= least).length;
  return ratio < 1 ? -steps : steps;
}

function isTinted(token: WrittenToken): boolean {
  return tintOf(token) !== 0;
}

function footWords({ status, stale, report, progress, readySeconds, turns }: GenerationColumn): string {
  if (stale && status !== 'writing')
    return report ? 'Of the recipe before. Generate writes it again.' : 'Not written yet.';
  if (report) {
    const end = report.ended === 'stop' ? 'ended its text' : 'stopped at the limit';
    const ready = readySeconds === null ? '' : `ready after ${formatSeconds(readySeconds)}, `;
    const kept = report.eightBits ? ', weights at 8 bits' : '';
    return `${ready}${formatCounted(report.ids.length, 'token')} in ${formatSeconds(report.seconds)}, ${end}${kept}`;
  }
  switch (status) {
    case 'waiting':
      return 'Waiting for its turn';
    case 'writing':
      return progress
        ? [
            `${formatCounted(progress.done, 'token')}, ${progress.rate.toFixed(1)} a second`,
            ...(turns.length > 0
              ? [`the recipe changed ${formatCounted(turns.length, 'time')} on the way`]
              : []),
          ].join(', ')
        : 'Opening…';
    case 'canceled':
      return 'Stopped';
    case 'failed':
      return 'It could not be run';
    case 'done':
      return '';
  }
}
