import { Button } from '../parts/Button';
import { setView } from '../state/studio';
import { useStudio } from '../studio-context';

/** The two ways to a whole recipe: an example, or a text. */
export function RecipeLinks() {
  const studio = useStudio();
  return (
    <div className="row recipe-links">
      <Button onClick={() => setView(studio, { recipes: 'examples' })}>Examples</Button>
      <Button onClick={() => setView(studio, { recipes: 'text' })}>Open YAML</Button>
    </div>
  );
}
