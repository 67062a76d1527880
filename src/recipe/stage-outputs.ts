import { storageInfo } from '../host/storage';
import { deleteOutput, listOutputs } from '../write/finished-outputs';

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
