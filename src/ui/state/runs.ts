/** The merges of the studio, predicted, running, interrupted, over: one list of records, distinguished by status. Pure. */
import type { ErrorReport } from '../../errors';
import { formatLeft } from '../../formats/quantity';
import type { Recipe } from '../../formats/recipe';
import { sameItems } from '../../merge/prediction/same-items';
import type { Progress, TensorReport } from '../../reports/job';
import type { InterruptedRun, MergeReport } from '../../reports/merge';
import type { PlanTensor } from '../../reports/plan';

/** Id of the run of the current recipe. */
export const NOW = 'now';

export type Run = PredictedRun | InterruptedMerge | RunState;

/** A merge that was begun here, at work or over. */
export interface RunState {
  /** Unique in this browser. */
  id: string;
  /** Given by the user; the default name is made of its differences. */
  name?: string;
  status: 'running' | 'done' | 'failed' | 'canceled';
  title: string;
  methodTitle: string;
  /** As requested: its λ may be left to a search. The report has the merged recipe. */
  recipe: Recipe;
  contributors: Contributor[];
  /** Structure of the output, from the plan. */
  planned: PlanTensor[];
  layers: number;
  destination: { kind: 'downloads' | 'folder'; name: string; folder: string | null };
  outputFiles: string[];
  startedAt: number;
  progress: Omit<Progress, 'finished'> | null;
  /** Reports of the tensors finished so far, in the order they finished. */
  tensors: TensorReport[];
  /** What the engine says beside its progress: something is slower, or done otherwise. */
  notes: readonly string[];
  report: MergeReport | null;
  error: ErrorReport | null;
  /** It was brought back: its files may be gone. */
  again?: true;
  /** It was stopped to go on later. */
  paused?: true;
  /** The predicted run that it merges; else the recipe. */
  of?: string;
}

/** A contributor as charts show it: saved with a plan or a run, so that later edits change neither name nor color. */
export interface Contributor {
  /** Id in the recipe, plan and report, e.g. `samples/base+samples/kitchen`. */
  id: string;
  label: string;
  color: number;
}

/** A run of the Layers tab that is only predicted: other settings for the models of the recipe. */
export interface PredictedRun {
  id: string;
  status: 'predicted';
  /** The models it is of (`deltaKey`): it is not shown for others. */
  of: string;
  /** Given by the user; the default name is made of its differences. */
  name: string | null;
  /** Its method and settings are taken; the rest is as in the recipe. */
  recipe: Recipe;
}

/** Remains of an interrupted merge. */
export interface InterruptedMerge extends InterruptedRun {
  id: string;
  status: 'interrupted';
}

/** Fields of a run that are known before it runs. */
export type RunPlan = Pick<
  RunState,
  | 'title'
  | 'methodTitle'
  | 'recipe'
  | 'contributors'
  | 'planned'
  | 'layers'
  | 'destination'
  | 'outputFiles'
  | 'of'
>;

/** A finished merge with its report; these are saved for later visits. */
export type FinishedRun = RunState & { status: 'done'; report: MergeReport };

/** Part of the studio's state about runs. */
interface Runs {
  runs: readonly Run[];
  currentRunId: string | null;
}

/** The run at work, else the last one; it shows on Run and Output. */
export function currentRun({ runs, currentRunId }: Runs): RunState | null {
  return (runs.find(({ id }) => id === currentRunId) as RunState | undefined) ?? null;
}

/** The finished run whose files show: the current one, or the last before one that is at work or came to nothing. */
export function lastFinished(state: Runs): RunState | null {
  const run = currentRun(state);
  return run === null || run.status === 'done' ? run : (finishedRuns(state)[0] ?? null);
}

/** Runs that are only predicted, of whatever models. */
export const predictedRuns = selected((run): run is PredictedRun => run.status === 'predicted');

/** Merges that were cut off and can go on. */
export const interruptedRuns = selected((run): run is InterruptedMerge => run.status === 'interrupted');

/** Merges that are over, the newest first. */
export const finishedRuns = selected(isFinished, (a, b) => b.startedAt - a.startedAt);

export function isFinished(run: Run): run is FinishedRun {
  return run.status === 'done' && run.report !== null;
}

/** A selector of some of the runs; the same list while they are the same. */
function selected<R extends Run>(is: (run: Run) => run is R, order?: (a: R, b: R) => number) {
  let last: readonly R[] = [];
  return ({ runs }: Pick<Runs, 'runs'>): readonly R[] => {
    const found = runs.filter(is);
    if (order) found.sort(order);
    if (!sameItems(last, found)) last = found;
    return last;
  };
}

/** The list with other runs of one status in place of those there were. */
export function withRuns<R extends Run>(
  runs: readonly Run[],
  status: R['status'],
  others: readonly R[],
): readonly Run[] {
  return [...runs.filter((run) => run.status !== status), ...others];
}

/** The list with one run changed. */
export function withEdited<R extends Run>(
  runs: readonly Run[],
  id: string | null,
  edit: (run: R) => R,
): readonly Run[] {
  return runs.map((run) => (run.id === id ? edit(run as R) : run));
}

// How far a run is, in words. Pure.

/** Title of each phase on screen. */
export const PHASE_TITLES: Readonly<Record<Progress['phase'], string>> = {
  planning: 'Planning',
  downloading: 'Downloading',
  hashing: 'Hashing inputs',
  checking: 'Checking what was kept',
  writing: 'Generating text',
  calibrating: 'Calibrating',
  searching: 'Tuning λ',
  measuring: 'Measuring whole models',
  merging: 'Merging',
};

/** `step 2 of 4 · tuning λ · about 12 s left`: beside the name of the step, where there are several. */
export function runWords({ phaseNumber, phase, secondsLeft }: Omit<Progress, 'finished'>): string {
  return [
    ...(phaseNumber && phaseNumber.of > 1 ? [`step ${phaseNumber.at} of ${phaseNumber.of}`] : []),
    PHASE_TITLES[phase].toLowerCase(),
    formatLeft(secondsLeft),
  ]
    .filter(Boolean)
    .join(' · ');
}

/** The same for those who hear it, the name of the step included. */
export function spokenWords(progress: Omit<Progress, 'finished'>): string {
  return [...(progress.step ? [progress.step.name] : []), runWords(progress)].join(': ');
}

/** How far a merge is, over all of its steps, in [0, 1]. */
export function runShare({
  phaseNumber,
  step,
  counted,
  bytes,
  bytesDone,
}: Omit<Progress, 'finished'>): number {
  if (step?.share !== undefined) return step.share;
  const { done, total } = counted ?? { done: bytesDone, total: bytes };
  const within = total > 0 ? Math.min(1, done / total) : 0;
  return phaseNumber ? (phaseNumber.at - 1 + within) / phaseNumber.of : within;
}
