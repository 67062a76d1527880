import { Button } from '../parts/Button';
import { Segmented } from '../parts/Segmented';
import { setView } from '../state/studio';
import { useNarrow, useRecipeAs, useRoomy, useStudio } from '../studio-context';
import { NewMerge } from './NewMerge';

/** How the recipe is shown, and the ways to another: an example, or one saved before. */
export function RecipeLinks() {
  const studio = useStudio();
  const as = useRecipeAs();
  const narrow = useNarrow();
  const roomy = useRoomy();
  return (
    <div className="row recipe-links">
      <Segmented
        label="Show the recipe as"
        value={as}
        options={[
          { value: 'form', label: 'Form' },
          { value: 'text', label: 'YAML' },
          ...(roomy ? [{ value: 'both' as const, label: 'Both' }] : []),
        ]}
        onChange={(recipeAs) => setView(studio, { recipeAs })}
      />
      {narrow ? <NewMerge /> : null}
      <Button onClick={() => setView(studio, { recipes: 'examples' })}>Examples</Button>
      <Button onClick={() => setView(studio, { recipes: 'saved' })}>Save</Button>
    </div>
  );
}
