/** What merges that were cut off have left, as the engine lists it. */
import type { InterruptedRun } from '../../reports/merge';
import { isAtWork } from './job';
import { notifyError, type Studio } from './studio';
import type { StudioState } from './studio-state';

/** Asks the engine what was cut off. Never rejects. */
export async function loadInterrupted(studio: Studio): Promise<void> {
  try {
    const interrupted = await studio.worker.interrupted();
    studio.store.setState({ interrupted });
  } catch (thrown) {
    notifyError(studio, thrown);
  }
}

/** Whether the last run left something that can be resumed. */
export function isKept(state: StudioState): boolean {
  return keptOf(state) !== undefined;
}

/** What the last run left to be resumed. */
export function keptOf({ run, interrupted }: StudioState): InterruptedRun | undefined {
  const names = run ? [run.destination.name, ...Object.values(run.names ?? {})] : [];
  return interrupted.find(
    ({ destination: { kind, name } }) => run?.destination.kind === kind && names.includes(name),
  );
}

/**
 * Lists what is left of a run that has just ended early, and forgets it where a person cancelled it here before the
 * first tensor was done: there is nothing to go on from. A folder on disk is left to its owner. Never rejects.
 */
export async function finishUnfinished(studio: Studio): Promise<void> {
  await loadInterrupted(studio);
  const state = studio.store.getState();
  const kept = keptOf(state);
  if (!state.job?.cancelling || !isAtWork(state, 'merge') || state.run?.paused) return;
  if (kept?.destination.kind !== 'downloads') return;
  if (kept.tensorsDone > 0 || (state.run?.progress?.tensorsDone ?? 0) > 0) return;
  try {
    await studio.worker.discardInterrupted(kept.destination);
  } catch (thrown) {
    notifyError(studio, thrown);
  }
  await loadInterrupted(studio);
}
