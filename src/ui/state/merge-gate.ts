/** May the recipe be merged now, and if not: why, and where to look. Pure; one answer for button, bar and tests. */
import { formatBytes, formatCounted } from '../../formats/quantity';
import type { PlanReport } from '../../reports/plan';
import { whyBusy } from './job';
import { whyNotOpen } from './named-models';
import { recipeProblems } from './recipe-validation';
import { methodOf, type StudioState } from './studio';
import type { Tab } from './tabs';

type MergeGate = { open: true } | Closed;

interface Closed {
  open: false;
  why: string;
  /** Next step, where one is known. */
  remedy?: string;
  /** `wait` resolves without the user, `fix` needs the user. */
  tone: 'wait' | 'fix';
  /** The tab that shows more. */
  tab?: Tab;
}

export function mergeGate(state: StudioState): MergeGate {
  const { engine, recipe, models, plan, output } = state;
  const busy = whyBusy(state);
  if (busy) return { open: false, ...busy, ...(engine.status === 'failed' ? engineRemedy(engine) : {}) };
  if (recipe.base === null && recipe.contributors.length === 0) {
    const opening = state.opening.at(-1);
    return closed('wait', opening ? `Opening ${opening}…` : 'Add models to begin.');
  }
  const unopened = whyNotOpen(state);
  if (unopened) {
    const { why, remedy, wait } = unopened;
    return closed(wait ? 'wait' : 'fix', why, { ...(remedy && { remedy }) });
  }
  const problem = recipeProblems(recipe, models, methodOf(recipe))[0];
  if (problem) return closed('fix', problem.message, { remedy: problem.remedy });
  if (plan.status === 'failed')
    return closed('fix', 'The plan failed.', { tab: 'files', ...hint(plan.error) });
  if (!plan.report) return closed('wait', 'Planning…');
  if (plan.status === 'ready' && !plan.report.clean) {
    const errors = plan.report.problems.filter((p) => p.severity === 'error');
    const { message, remedy } = errors[0] ?? { message: '', remedy: '' };
    return closed('fix', `The plan has ${formatCounted(errors.length, 'error')}.`, {
      tab: 'files',
      remedy: `${message} ${remedy}`,
    });
  }
  const storage = engine.info?.storage;
  if (output.kind === 'downloads' && storage && !storage.available) {
    return closed('fix', 'This browser offers no storage to keep the result in.', {
      tab: 'files',
      remedy: 'Leave private browsing, or save to a folder where the browser can.',
    });
  }
  const needed = memoryNeeded(state);
  if (storage?.memoryBytes !== undefined && needed > storage.memoryBytes) {
    const room = `${formatBytes(storage.memoryBytes)} fit into memory`;
    return closed(
      'fix',
      `This merge needs ${formatBytes(needed)}; this browser keeps no files, and ${room}.`,
      {
        tab: 'files',
        remedy: 'Use a normal window (not a private one) with site data allowed.',
      },
    );
  }
  return { open: true };
}

function closed(tone: 'wait' | 'fix', why: string, more: Pick<Closed, 'remedy' | 'tab'> = {}): Closed {
  return { open: false, tone, why, ...more };
}

/** Bytes that a merge leaves in the browser's storage: downloads, and output that is not written elsewhere. */
function memoryNeeded({ plan, output }: StudioState): number {
  if (!plan.report) return 0;
  return bytesToKeep(plan.report, output) + (output.kind === 'downloads' ? plan.report.bytesToWrite : 0);
}

/** Bytes that are downloaded and stay. */
export function bytesToKeep(
  { bytesToDownload, stream }: PlanReport,
  { streams }: Pick<StudioState['output'], 'streams'>,
): number {
  return Math.max(0, bytesToDownload - (streams ? (stream?.bytes ?? 0) : 0));
}

/** Repeats the message of an engine that stopped; for one that did not start, the reason. */
function engineRemedy({ info, error }: StudioState['engine']): { remedy?: string } {
  return info && error ? { remedy: error.hint } : hint(error);
}

function hint(error: { message: string; hint: string } | null): { remedy?: string } {
  return error ? { remedy: `${error.message} ${error.hint}` } : {};
}
