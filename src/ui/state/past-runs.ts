/** Runs of before: kept when they finish, brought back with their recipe and charts, compared, forgotten. */
import type { MergeReport } from '../../reports/merge';
import { hideRun, NOW } from '../layers/predicted-runs';
import { deleteRun, keepRun, keptRuns } from '../local/saved-runs';
import type { StudioFacts } from './facts';
import { isAtWork, JOB_WORDS } from './job';
import { openRecipe } from './recipe-open';
import type { KeptRun, RunFacts } from './run-facts';
import { notifyError, type Studio, setView, showTab } from './studio';

/** Loads what was kept and keeps every run that finishes; returns a function that stops. */
export function watchRuns(studio: Studio): () => void {
  void load(studio);
  return studio.store.subscribe(({ run }, before) => {
    // one that was brought back is kept already, under the name it was given
    if (run?.status !== 'done' || !run.report || run.again || before.run?.status === 'done') return;
    // a browser that keeps nothing: the list stays empty
    const kept = keptRun(run, run.report);
    const settled = studio.store.getState().predictedRuns.find((own) => own.id === run.of);
    keepRun(settled?.name ? { ...kept, name: settled.name } : kept)
      .then(() => load(studio))
      .then(() => settled && replaceRun(studio, settled.id, kept.id))
      .catch(() => {});
  });
}

/** A merge takes the place of the run that predicted it. */
function replaceRun(studio: Studio, predicted: string, kept: string): void {
  studio.store.setState(({ predictedRuns, view }) => ({
    predictedRuns: predictedRuns.filter((own) => own.id !== predicted),
    view: { ...view, runs: view.runs.map((id) => (id === predicted ? kept : id)) },
  }));
}

/** Brings a run back as if it had just finished: its recipe into the panel, its charts into Layers. */
export function reopenRun(studio: Studio, kept: KeptRun): void {
  const { id: _, ...run } = kept;
  openRecipe(studio, kept.recipe);
  setView(studio, { runs: [NOW] });
  studio.store.setState((s) => ({
    run: {
      ...run,
      id: (s.run?.id ?? 0) + 1,
      status: 'done',
      progress: null,
      tensors: kept.report.tensors,
      log: [{ at: 0, tone: 'plain', text: `Merged ${new Date(kept.startedAt).toLocaleString()}` }],
      error: null,
      again: true,
    },
  }));
  showTab(studio, 'layers');
}

/** Gives a run a name. */
export async function renameRun(studio: Studio, kept: KeptRun, name: string): Promise<void> {
  try {
    await keepRun({ ...kept, name });
  } catch (thrown) {
    notifyError(studio, thrown);
  }
  await load(studio);
}

/** What a finished run is kept under. */
export function keptRunId(startedAt: number, report: Pick<MergeReport, 'recipeSha256'>): string {
  return `${startedAt}-${report.recipeSha256.slice(0, 12)}`;
}

/** Forgets a run; files it wrote stay where they are. */
export async function forgetRun(studio: Studio, kept: KeptRun): Promise<void> {
  try {
    await deleteRun(kept.id);
    hideRun(studio, kept.id);
  } catch (thrown) {
    notifyError(studio, thrown);
  }
  await load(studio);
}

/** Why no other run can be opened now, or null. */
export function whyNotReopen(facts: StudioFacts): string | null {
  return isAtWork(facts, 'merge') ? JOB_WORDS.merge.busy : null;
}

async function load(studio: Studio): Promise<void> {
  const pastRuns = await keptRuns().catch(() => []);
  studio.store.setState({ pastRuns });
}

function keptRun(run: RunFacts, report: NonNullable<RunFacts['report']>): KeptRun {
  const { title, methodTitle, contributors, planned, layers, destination, outputFiles, startedAt } = run;
  return {
    id: keptRunId(startedAt, report),
    title,
    methodTitle,
    // what was merged: where λ was searched for, the report has what was found
    recipe: report.recipe,
    contributors,
    planned,
    layers,
    destination,
    outputFiles,
    startedAt,
    report,
  };
}
