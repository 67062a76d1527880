import { useState } from 'react';
import { methods } from '../../merge/methods/index';
import { Button } from '../parts/Button';
import { CloseIcon } from '../parts/icons';
import { forgetRun, renameRun, reopenRun, whyNotReopen } from '../state/past-runs';
import { startMerge } from '../state/run';
import { useFacts, useStudio } from '../studio-context';
import {
  addPredictedRun,
  applyRun,
  NOW,
  removePredictedRun,
  renamePredictedRun,
  toggleRun,
} from './predicted-runs';
import { methodName } from './run-names';
import type { LayersRun } from './runs';

/** The runs there are: which are shown, what they are called, and more of them. */
export function RunsStrip({ runs }: { runs: readonly LayersRun[] }) {
  const studio = useStudio();
  const hasModels = useFacts((s) => s.recipe.contributors.some((c) => c.enabled));
  const own = runs[0]!.contributors.map((c) => c.id).join('\n');
  const near = runs.filter((run) => run.place >= 0 || run.contributors.map((c) => c.id).join('\n') === own);
  const others = runs.filter((run) => !near.includes(run));
  return (
    <section className="runs-strip" aria-label="Runs">
      <ul>
        {near.map((run) => (
          <RunChip key={run.id} run={run} />
        ))}
      </ul>
      <select
        className="field"
        aria-label="Add a run"
        value=""
        disabled={!hasModels}
        onChange={(event) =>
          addPredictedRun(studio, event.target.value === NOW ? undefined : event.target.value)
        }
      >
        <option value="">Add run…</option>
        <option value={NOW}>the settings as they are</option>
        {methods
          .filter((method) => method.base !== 'none')
          .map((method) => (
            <option key={method.id} value={method.id}>
              {methodName(method)}
            </option>
          ))}
      </select>
      {others.length > 0 ? (
        <details className="runs-others">
          <summary className="small">Merges of other models ({others.length})</summary>
          <ul>
            {others.map((run) => (
              <RunChip key={run.id} run={run} />
            ))}
          </ul>
        </details>
      ) : null}
    </section>
  );
}

const LETTERS = ['A', 'B', 'C', 'D'];

function RunChip({ run }: { run: LayersRun }) {
  const studio = useStudio();
  const [renaming, setRenaming] = useState(false);
  const why = useFacts((s) => whyNotReopen(s));
  const shown = run.place >= 0;
  const rename = (name: string) => {
    setRenaming(false);
    const given = name.trim() === '' || name.trim() === run.name ? null : name.trim();
    if (run.settings) renamePredictedRun(studio, run.id, given ?? run.settings.name);
    else if (run.kept && given) void renameRun(studio, run.kept, given);
  };
  return (
    <li className="run-chip" data-shown={shown || undefined}>
      <button
        type="button"
        className="run-toggle"
        aria-pressed={shown}
        title={shown ? 'Hide this run' : 'Show this run beside the others'}
        onClick={() => toggleRun(studio, run.id)}
      >
        <span className="run-letter" data-place={run.place}>
          {shown ? LETTERS[run.place] : '+'}
        </span>
        <span className="truncate">{run.name}</span>
        <span className="small quiet">{stateText(run)}</span>
      </button>
      {renaming ? (
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
      ) : null}
      {run.id === NOW ? null : (
        <>
          <button
            type="button"
            className="link small"
            aria-label={`Rename ${run.name}`}
            onClick={() => setRenaming(true)}
          >
            rename
          </button>
          <button
            type="button"
            className="link small"
            aria-label={run.settings ? `Merge ${run.name}` : `Open the recipe of ${run.name}`}
            disabled={why !== null}
            title={why ?? undefined}
            onClick={() => {
              if (run.kept) reopenRun(studio, run.kept);
              else if (run.settings) {
                applyRun(studio, run.settings);
                void startMerge(studio);
              }
            }}
          >
            {run.settings ? 'merge' : 'open'}
          </button>
          <Button
            variant="quiet"
            iconOnly
            tip={run.settings ? 'Remove this run' : 'Forget this merge; files it wrote stay'}
            aria-label={`Remove ${run.name}`}
            onClick={() => (run.kept ? void forgetRun(studio, run.kept) : removePredictedRun(studio, run.id))}
          >
            <CloseIcon />
          </Button>
        </>
      )}
    </li>
  );
}

function stateText({ id, state, kept }: LayersRun): string {
  if (kept) {
    return new Date(kept.startedAt).toLocaleString(undefined, { dateStyle: 'short', timeStyle: 'short' });
  }
  const said = { exact: 'merged', running: 'merging', predicted: '≈ predicted', planned: 'not measured' }[
    state
  ];
  return id === NOW ? `recipe, ${said}` : said;
}
