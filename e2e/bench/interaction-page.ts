/**
 * The studio for the interaction benchmark and for pictures, over a fake model of 32 layers, or of what the address says:
 * `?layers=24&experts=64`.
 */

import { startWorker } from '../../src/platform';
import { startStudio } from '../../src/ui/start';
import { openHub } from '../../src/ui/state/models';
import { addContributor } from '../../src/ui/state/recipe-state';
import { editRecipe, type Studio } from '../../src/ui/state/studio';
import { connectWorker } from '../../src/worker/client';
import workerUrl from './interaction.worker.ts?worker&url';

declare global {
  interface Window {
    studio: Studio;
    addFourth(): Promise<void>;
  }
}

const worker = () => startWorker(workerUrl, location.search.slice(1));
window.studio = startStudio(connectWorker(worker), document.getElementById('root') as HTMLElement).studio;

window.addFourth = async () => {
  await openHub(window.studio, 'bench/fourth', new AbortController().signal);
  const opened = window.studio.store.getState().models.at(-1);
  if (opened) editRecipe(window.studio, (recipe) => addContributor(recipe, opened.ref));
};
