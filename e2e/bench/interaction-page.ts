/** The studio for the interaction benchmark, over a pretended model of 32 layers and four contributors. */
import { fixtureEngine } from '../../src/ui/engine-fixture';
import { startStudio } from '../../src/ui/start';
import { openHub } from '../../src/ui/state/models';
import { addContributor } from '../../src/ui/state/recipe-facts';
import { editRecipe, type Studio } from '../../src/ui/state/studio';

declare global {
  interface Window {
    studio: Studio;
    longTasks: { start: number; duration: number }[];
    addFourth(): Promise<void>;
  }
}

const LAYERS = 32;

window.studio = startStudio(
  fixtureEngine({ layers: LAYERS }),
  document.getElementById('root') as HTMLElement,
).studio;

window.addFourth = async () => {
  await openHub(window.studio, 'bench/fourth');
  const opened = window.studio.store.getState().models.at(-1);
  if (opened) editRecipe(window.studio, (recipe) => addContributor(recipe, opened.ref));
};
