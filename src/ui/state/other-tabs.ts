/** One merge at a time over all tabs: the others show it and can take it over. */

import { resumeRun } from './interrupted-merges';
import { loadInterrupted } from './past-runs';
import { interruptedRuns } from './runs';
import { notifyError, type Studio } from './studio';

/** Follows the merges of other tabs for as long as the studio lives. */
export function watchOtherTabs(studio: Studio): void {
  studio.worker
    .follow((elsewhere) => {
      studio.store.setState({ elsewhere });
      // it is finished, or its tab is gone: then it can be resumed here
      if (elsewhere === null) void loadInterrupted(studio);
    })
    .catch((thrown: unknown) => notifyError(studio, thrown));
}

/** Makes the other tab stop, and goes on with its merge here. */
export async function takeOverMerge(studio: Studio): Promise<void> {
  const name = studio.store.getState().elsewhere?.name;
  try {
    await studio.worker.takeOver();
    studio.store.setState({ elsewhere: null });
    await loadInterrupted(studio);
    const interrupted = interruptedRuns(studio.store.getState());
    const run = interrupted.find(({ destination }) => destination.name === name) ?? interrupted[0];
    if (run) await resumeRun(studio, run);
  } catch (thrown) {
    notifyError(studio, thrown);
  }
}
