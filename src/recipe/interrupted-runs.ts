import { AmalgamError } from '../errors';
import { isRunHeld } from '../host/run-lock';
import { storageInfo } from '../host/storage';
import type { InterruptedRun } from '../reports/merge';
import { deleteOutput, listOutputs } from '../write/finished-outputs';
import { discardInterrupted, listInterruptedOutputs } from '../write/folder-journals';

/** Interrupted merges that can continue, the newest first; none while one runs. */
export async function interruptedRuns(): Promise<InterruptedRun[]> {
  if (!(await storageInfo()).available || (await isRunHeld())) return [];
  const outputs = await listInterruptedOutputs();
  if (outputs.length === 0) return [];
  // most sessions find none, and do without YAML until a recipe is read
  const { parseRecipe } = await import('../formats/recipe-yaml');
  const runs: InterruptedRun[] = [];
  for (const { kind, name, journal } of outputs) {
    const { recipe } = parseRecipe(journal.begun.recipe);
    if (!recipe) continue; // written by a version with other recipes: it can only be discarded
    const { engine, adapter, startedAt, stream } = journal.begun;
    const written = new Map(journal.safePoints.map(({ file, bytes }) => [file, bytes]));
    runs.push({
      destination: { kind, name },
      recipe,
      engine,
      adapter,
      startedAt,
      ...(stream && { stream }),
      tensorsDone: journal.safePoints.reduce((sum, { tensors }) => sum + tensors.length, 0),
      tensors: journal.planned?.tensors ?? 0,
      bytesDone: [...written.values()].reduce((a, b) => a + b, 0),
      bytes: journal.planned?.bytes ?? 0,
    });
  }
  return runs.sort((a, b) => (a.startedAt < b.startedAt ? 1 : -1));
}

/** Forgets an interrupted merge. @throws Busy while a merge runs in any tab */
export async function forgetInterrupted({ kind, name }: InterruptedRun['destination']): Promise<void> {
  if (await isRunHeld()) {
    throw new AmalgamError('Busy', `A merge is running.`, 'Wait for it or cancel it first.');
  }
  await discardInterrupted(kind, name);
}

/** Prefix of the names of stages' outputs, which exist only while they are needed. */
export const STAGE_PREFIX = 'amalgam-stage-';
/** Held while stages are merged, so that another tab does not remove their outputs. */
export const STAGES_LOCK = 'amalgam-stages';

/**
 * Removes the outputs of stages that a crashed tab left behind; those of a tab that is still merging stay. Without storage
 * there is nothing to remove.
 */
export async function cleanStages(): Promise<void> {
  if (!(await storageInfo()).available) return;
  await navigator.locks.request(STAGES_LOCK, { ifAvailable: true }, async (lock) => {
    if (!lock) return;
    for (const { name } of await listOutputs()) if (name.startsWith(STAGE_PREFIX)) await deleteOutput(name);
  });
}
