import { formatCounted } from '../../formats/quantity';
import type { Recipe } from '../../formats/recipe';
import { formatRecipe } from '../../formats/recipe-format';
import { recipeModels, recipeRepositories } from '../../formats/recipe-models';
import { methodById } from '../../merge/methods/index';
import { Button } from '../parts/Button';
import { Section } from '../parts/Section';
import { shortName } from '../state/built-recipe';
import { editRecipe, setView } from '../state/studio';
import { useRecipeAs, useStudio } from '../studio-context';
import { ModelAccess } from './ModelAccess';

/** A recipe beyond the fields of the form: the reasons, and its text. */
export function WrittenRecipe({ recipe }: { recipe: Recipe }) {
  const studio = useStudio();
  const beside = useRecipeAs() === 'both';
  const method = methodById.get(recipe.mergeMethod);
  return (
    <Section title="Recipe">
      <p className="small quiet">
        {reasons(recipe).join(', ')}: the form has no fields for this, so the recipe is merged as it is
        written.
      </p>
      <dl className="stack terms">
        {recipe.stages?.map((stage) => (
          <div key={stage.name}>
            <dt>{stage.name}</dt>
            <dd>
              {stage.mergeMethod} of {names(stage)}
            </dd>
          </div>
        ))}
        <div>
          <dt>{recipe.stages ? (recipe.name ?? 'result') : 'method'}</dt>
          <dd>
            {method?.title ?? recipe.mergeMethod}
            {recipe.stages ? ` of ${names(recipe)}` : ''}
          </dd>
        </div>
        {recipe.stages ? null : (
          <div>
            <dt>models</dt>
            <dd>{names(recipe)}</dd>
          </div>
        )}
      </dl>
      {recipeRepositories(recipe).map((name) => (
        <ModelAccess key={name} of={name} titled />
      ))}
      {beside ? null : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region is reached by keyboard too.
        <section className="yaml panel" tabIndex={0} aria-label="Recipe as it is written">
          <pre>{formatRecipe(recipe)}</pre>
        </section>
      )}
      <div className="row wrap">
        {beside ? null : <Button onClick={() => setView(studio, { recipeAs: 'text' })}>Edit</Button>}
        <Button onClick={() => editRecipe(studio, (r) => ({ ...r, asWritten: null }))}>
          Back to the form
        </Button>
      </div>
      <p className="small quiet">
        The form keeps base, models and method; the rest of this recipe is dropped.
      </p>
    </Section>
  );
}

/** Parts of the recipe that the form has no field for. */
function reasons(recipe: Recipe): string[] {
  const { slices, stages, amalgam, parameters, models = [] } = recipe;
  const settings = [parameters, ...models.map((m) => m.parameters)].flatMap((level) => Object.values(level));
  const lists = settings.filter(Array.isArray);
  const found = [
    stages && formatCounted(stages.length + 1, 'stage'),
    slices && formatCounted(slices.length, 'slice'),
    lists.some((list) => typeof list[0] === 'number') && 'gradients',
    lists.some((list) => typeof list[0] === 'object') && 'filters',
    (amalgam.include || amalgam.exclude) && 'tensors left out',
  ].filter((reason) => typeof reason === 'string');
  return found.length > 0 ? found : ['settings of its own'];
}

/** The models of one document; names of stages stand for their outputs. */
function names({ stages: _, ...own }: Recipe): string {
  return recipeModels(own)
    .map((ref) => (ref.includes('+') ? shortName(ref.split('+')[1]!) : shortName(ref)))
    .join(', ');
}
