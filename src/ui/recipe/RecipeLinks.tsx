import { Button } from '../parts/Button';
import { setView } from '../state/studio';
import { useStudio } from '../studio-context';

/** The ways to a whole recipe: an example, one saved before, or a text. */
export function RecipeLinks() {
  const studio = useStudio();
  return (
    <div className="row recipe-links">
      <Button onClick={() => setView(studio, { recipes: 'examples' })}>Examples</Button>
      <Button onClick={() => setView(studio, { recipes: 'saved' })}>Save</Button>
      <Button onClick={() => setView(studio, { recipes: 'text' })}>YAML</Button>
    </div>
  );
}
