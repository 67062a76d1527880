import { Button } from '../parts/Button';
import { emptyRecipe } from '../state/recipe-state';
import { editRecipe } from '../state/studio';
import { useStudio, useStudioState } from '../studio-context';

/** Begins with an empty recipe; undo brings the one before back. */
export function NewMerge() {
  const studio = useStudio();
  const empty = useStudioState((s) => s.recipe.base === null && s.recipe.contributors.length === 0);
  return (
    <Button
      tip="Clears the recipe; undo brings it back"
      why={empty ? 'The recipe is empty already.' : null}
      onClick={() => editRecipe(studio, () => emptyRecipe)}
    >
      New merge
    </Button>
  );
}
