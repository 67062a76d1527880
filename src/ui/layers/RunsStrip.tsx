import { memo, useCallback, useEffect, useState } from 'react';
import type { Recipe } from '../../formats/recipe';
import { methods } from '../../merge/methods/index';
import { awaitsMerge } from '../../merge/prediction/predicted-report';
import { methodName } from '../format/method-name';
import { Button, LinkButton, MoreIcon } from '../parts/Button';
import { Select } from '../parts/fields';
import { Menu, type MenuAction } from '../parts/Menu';
import { PopoverFrame } from '../parts/PopoverFrame';
import { Cut, RunLetter } from '../parts/Section';
import { votesOn } from '../state/generation';
import { recallCells } from '../state/measure';
import { runPerplexity } from '../state/measure-table';
import { scoresOf, scoreWords } from '../state/measure-tasks';
import { mergeGate } from '../state/merge-gate';
import {
  belongsTo,
  recipeModelIds,
  removeRun,
  renameRun,
  reopenRun,
  restoreRun,
  whyNotReopen,
} from '../state/past-runs';
import { addPredictedRun, takeSettings, toggleRun } from '../state/predicted-runs';
import { mergeRuns } from '../state/run';
import { currentRun, NOW } from '../state/runs';
import type { StudioState } from '../state/studio';
import { useReady, useStudio, useStudioState } from '../studio-context';
import { type LayersRun, writesFactors } from './runs';

/** The runs of these models in one line: which are shown, what they are called, and more of them; others are folded. */
export function RunsStrip({ runs }: { runs: readonly LayersRun[] }) {
  useReady(recallCells);
  const [deleted, setDeleted] = useState<Deleted | null>(null);
  const ids = useStudioState((s) => recipeModelIds(s).join('\n'));
  const near = runs.filter((run) => run.place >= 0 || run.id === NOW || belongsTo(run, ids.split('\n')));
  const others = runs.filter((run) => !near.includes(run));
  const onDelete = useCallback((name: string, undo: () => void) => setDeleted({ name, undo }), []);
  return (
    <section className="row runs-strip" aria-label="Runs">
      <ul className="row tight scroll-x runs-line">
        {near.map((run) => (
          <RunChip key={run.id} run={run} onDelete={onDelete} />
        ))}
      </ul>
      <AddRun />
      <MergeShown runs={near} />
      {deleted ? <Undo key={deleted.name} {...deleted} onEnd={() => setDeleted(null)} /> : null}
      {others.length > 0 ? (
        <PopoverFrame
          label="Merges of other models"
          trigger={<LinkButton className="small runs-others">{others.length} of other models</LinkButton>}
        >
          <ul className="stack tight">
            {others.map((run) => (
              <RunChip key={run.id} run={run} onDelete={onDelete} />
            ))}
          </ul>
        </PopoverFrame>
      ) : null}
    </section>
  );
}

interface Deleted {
  name: string;
  undo(): void;
}

/** Time in which a deleted run can be brought back, in milliseconds. */
const UNDO_MS = 10_000;

function Undo({ name, undo, onEnd }: Deleted & { onEnd(): void }) {
  useEffect(() => {
    const timer = setTimeout(onEnd, UNDO_MS);
    return () => clearTimeout(timer);
  }, [onEnd]);
  return (
    <span className="row tight small" role="status">
      <span className="truncate">{name} is deleted.</span>
      <LinkButton
        onClick={() => {
          undo();
          onEnd();
        }}
      >
        Undo
      </LinkButton>
    </span>
  );
}

/** Whether the numbers of the merge are predicted, and not only those of the models; factors of a LoRA have none. */
function isPredictedWhole(run: LayersRun): boolean {
  const [first] = run.reports.values();
  return first !== undefined && !awaitsMerge(first) && !writesFactors(run);
}

/** Another run that is only predicted. */
const AddRun = memo(function AddRun() {
  const studio = useStudio();
  const hasModels = useStudioState((s) => s.recipe.contributors.some((c) => c.enabled));
  return (
    <Select
      className="field run-add"
      aria-label="Add a run"
      value=""
      disabled={!hasModels}
      options={[
        { value: '', label: '+ run' },
        { value: NOW, label: 'the settings as they are' },
        ...methods
          .filter((method) => method.base !== 'none')
          .map((method) => ({ value: method.id, label: methodName(method) })),
      ]}
      onChange={(chosen) => addPredictedRun(studio, chosen === NOW ? undefined : chosen)}
    />
  );
});

/** Merges the shown predicted runs, one after the other. */
function MergeShown({ runs }: { runs: readonly LayersRun[] }) {
  const studio = useStudio();
  const gate = useStudioState((s) => whyNotMerge(s));
  const wanted = runs.filter(
    (run) => run.place >= 0 && (run.state === 'predicted' || run.state === 'planned'),
  );
  if (runs.filter((run) => run.place >= 0).length < 2 || wanted.length === 0) return null;
  const byPlace = [...wanted].sort((a, b) => a.place - b.place).map((run) => run.id);
  return (
    <Button
      tip="One after the other; the recipe stays as it is"
      why={gate}
      onClick={() => void mergeRuns(studio, byPlace)}
    >
      {wanted.length === 1 ? 'Merge the shown run' : `Merge all ${wanted.length} shown`}
    </Button>
  );
}

/** Why nothing can be merged now, or null. */
function whyNotMerge(state: StudioState): string | null {
  const gate = mergeGate(state);
  return gate.open ? null : gate.why;
}

interface RunChipProps {
  run: LayersRun;
  onDelete(name: string, undo: () => void): void;
}

const RunChip = memo(function RunChip({ run, onDelete }: RunChipProps) {
  const studio = useStudio();
  const [renaming, setRenaming] = useState(false);
  const whyNotOpen = useStudioState((s) => whyNotReopen(s));
  const whyNot = useStudioState((s) => whyNotMerge(s));
  const isQueued = useStudioState((s) => s.queuedRuns.includes(run.id));
  // what has just been merged is open already
  const isOpen = useStudioState(
    (s) => run.id === NOW && currentRun(s)?.status === 'done' && currentRun(s)!.recipe === run.recipe,
  );
  const score = useRunScore(run.recipe);
  const shown = run.place >= 0;
  const own = run.kept ?? run.settings;
  const rename = (name: string) => {
    setRenaming(false);
    const given = name.trim() === '' || name.trim() === run.name ? null : name.trim();
    if (own && given) void renameRun(studio, own, given);
  };
  const open = () => {
    if (run.kept) reopenRun(studio, run.kept);
    else if (run.settings) takeSettings(studio, run.settings.recipe);
  };
  const remove = () => {
    if (!own) return;
    removeRun(studio, own);
    onDelete(run.name, () => restoreRun(studio, own, shown));
  };
  const actions: MenuAction[] = [
    { label: 'Rename', act: () => setRenaming(true) },
    ...(run.settings && run.state !== 'running'
      ? [{ label: 'Merge', why: whyNot, act: () => void mergeRuns(studio, [run.id]) }]
      : []),
    ...(isOpen ? [] : [{ label: 'Open its recipe', why: whyNotOpen, act: open }]),
    { label: 'Delete', ...(run.kept && { hint: 'files it wrote stay' }), act: remove },
  ];
  if (renaming) {
    return (
      <li className="chip rigid run-chip">
        <input
          className="field"
          aria-label={`Name of ${run.name}`}
          defaultValue={run.name}
          // biome-ignore lint/a11y/noAutofocus: the field was just asked for.
          autoFocus
          onBlur={(event) => rename(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === 'Enter') rename(event.currentTarget.value);
            if (event.key === 'Escape') setRenaming(false);
          }}
        />
      </li>
    );
  }
  return (
    <li className="chip rigid run-chip" data-on={shown || undefined}>
      <button
        type="button"
        className="run-toggle nowrap"
        aria-pressed={shown}
        title={`${run.name}: ${shown ? 'hide it' : 'show it beside the others'}`}
        onClick={() => toggleRun(studio, run.id)}
      >
        {shown ? <RunLetter place={run.place} /> : <RunLetter place={-1}>+</RunLetter>}
        <Cut text={run.name} />
        <span className="small quiet rigid">
          {isQueued ? 'queued' : stateText(run)}
          {score === null ? '' : ` · ${score}`}
        </span>
      </button>
      {own ? (
        <Menu
          trigger={<Button icon={MoreIcon} variant="quiet" aria-label={`Actions of ${run.name}`} />}
          actions={actions}
        />
      ) : null}
    </li>
  );
});

function stateText(run: LayersRun): string {
  const { id, kept } = run;
  const state = run.state === 'predicted' && !isPredictedWhole(run) ? 'planned' : run.state;
  if (kept && id !== NOW) {
    return new Date(kept.startedAt).toLocaleString(undefined, { dateStyle: 'short', timeStyle: 'short' });
  }
  const said = { exact: 'merged', running: 'merging', predicted: '≈ predicted', planned: 'not merged' }[
    state
  ];
  return id === NOW ? `recipe · ${said}` : said;
}

/**
 * Measurements of a run: `perplexity 6.42` over the chosen texts, where all of them were measured by the present protocol,
 * `hellaswag acc 0.412 ± 0.049` for each scored task, and `votes 6 : 1` of the newest blind test; null where there are none.
 */
function useRunScore(recipe: Recipe): string | null {
  return useStudioState((s) => {
    const { tests } = s.generation.blind;
    if (s.measure.cells.size === 0 && tests.length === 0) return null;
    const perplexity = runPerplexity(s, recipe);
    const scores = scoresOf(s.measure, recipe).map(scoreWords);
    const found = [perplexity && `perplexity ${perplexity}`, ...scores, votesOn(tests, recipe)].filter(
      (one) => one !== null,
    );
    return found.length === 0 ? null : found.join(' · ');
  });
}
