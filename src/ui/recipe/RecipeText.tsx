import { useMemo } from 'react';
import { useShallow } from 'zustand/react/shallow';
import { formatCounted } from '../../formats/quantity';
import type { Recipe } from '../../formats/recipe';
import { formatRecipe } from '../../formats/recipe-format';
import { recipeRepositories } from '../../formats/recipe-models';
import { parseRecipe } from '../../formats/recipe-yaml';
import { exportWarnings } from '../../merge/method-export';
import { methodById } from '../../merge/methods/index';
import { unknownAtLines } from '../../merge/recipe-names';
import type { ModelInfo } from '../../reports/models';
import { saveText } from '../local/local-files';
import { Button, CopyButton, DownloadIcon, FileButton } from '../parts/Button';
import { Message } from '../parts/Message';
import { Section } from '../parts/Section';
import { YamlText } from '../parts/YamlText';
import { buildRecipe, outputName } from '../state/built-recipe';
import { hubModels, isRecipeOpen, missingModels, openAllOfHub } from '../state/named-models';
import { recipeState } from '../state/opened-recipe';
import { addContributor, type RecipeState } from '../state/recipe-state';
import { editRecipe, methodOf, setView } from '../state/studio';
import { useParts, useStudio, useStudioState } from '../studio-context';
import { ModelAccess } from './ModelAccess';

/**
 * The recipe as text, the other side of the form: an edit here is an edit there, as soon as the text can be read. A
 * text that cannot has the error at its line, and the recipe stays unchanged; an edit of the form takes its place.
 */
export function RecipeText() {
  const studio = useStudio();
  const { recipe, models } = useParts('recipe', 'models');
  const built = useMemo(() => buildRecipe(recipe, models, methodOf(recipe)), [recipe, models]);
  const written = useMemo(() => formatRecipe(built), [built]);
  const isComplete = useStudioState((s) => s.recipe.asWritten !== null || isRecipeOpen(s));
  // as it was typed, comments and all, for as long as the recipe is the one that was read off it
  const typed = useStudioState((s) => s.view.typed);
  const text = typed?.of === recipe ? typed.text : written;
  const parsed = useMemo(() => parseRecipe(text), [text]);
  const { problems } = parsed;
  const missing = useStudioState(useShallow(missingModels));
  const warnings = useMemo(
    () => (parsed.recipe ? unknownAtLines(text, parsed.recipe, methodById) : []),
    [text, parsed],
  );

  const write = (next: string) => {
    const { recipe: read } = parseRecipe(next);
    if (read) {
      const changed = recipeFromText(recipe, read, models);
      // spaces and comments change no recipe, and are no step to undo
      const says = formatRecipe(buildRecipe(changed, models, methodOf(changed)));
      if (says !== written) editRecipe(studio, () => changed);
    }
    setView(studio, { typed: { text: next, of: studio.store.getState().recipe } });
  };

  const exported = useMemo(() => exportWarnings(built, methodById), [built]);
  const refused = exported.some((warning) => warning.refused);
  const doubtful = new Set(warnings.map((w) => w.line));
  return (
    <div className="stack recipe-text">
      <div className="row wrap">
        <span className="small quiet" role="status">
          {problems.length === 0
            ? warnings.length > 0
              ? formatCounted(warnings.length, 'warning')
              : !isComplete
                ? 'Complete once its models are open'
                : exported.length === 0
                  ? 'As mergekit reads it'
                  : refused
                    ? 'Amalgam merges it, mergekit does not'
                    : 'Not quite as mergekit merges it'
            : `${formatCounted(problems.length, 'problem')}: not applied`}
        </span>
        <span className="spacer" />
        <CopyButton text={() => text} />
        <Button icon={DownloadIcon} onClick={() => saveText(text, `${outputName(recipe)}.yml`)}>
          Save
        </Button>
        <FileButton
          label="Open a recipe file"
          accept=".yml,.yaml,text/yaml"
          onFiles={([first]) => void first?.file.text().then(write)}
        >
          Open…
        </FileButton>
        <GetAll />
      </div>
      <YamlText label="Recipe as YAML" text={text} problems={problems} doubtful={doubtful} onChange={write}>
        {warnings.map(({ line, message, remedy }) => (
          <Message
            key={`${line}:${message}`}
            tone="warning"
            title={`Line ${line}: ${message}`}
            hint={remedy}
          />
        ))}
        {isComplete && problems.length === 0 && exported.length > 0 ? (
          <Message
            tone="warning"
            title={refused ? 'mergekit refuses this recipe' : 'What mergekit does otherwise'}
          >
            <dl className="stack small">
              {exported.map(({ setting, consequence }) => (
                <div key={setting}>
                  <dt className="strong">{setting}</dt>
                  <dd className="quiet">{consequence}</dd>
                </div>
              ))}
            </dl>
          </Message>
        ) : null}
        {missing.map((name) => (
          <ModelAccess key={name} of={name} titled />
        ))}
      </YamlText>
    </div>
  );
}

/** All models of the Hub that the text names, in one press. */
function GetAll() {
  const studio = useStudio();
  const count = useStudioState((s) => hubModels(s).length);
  return count > 1 ? (
    <Button className="strong" onClick={() => void openAllOfHub(studio)}>
      Get all {count} from the Hub
    </Button>
  ) : null;
}

// The recipe as text and as form at once: what a text that was typed makes of the state.

/**
 * The state of a recipe that was written in the place of `before`. Models that stay keep their color, and those that
 * are switched off, which no text names, stay switched off. So does a base that the method does without. Pure.
 */
export function recipeFromText(
  before: RecipeState,
  recipe: Recipe,
  models: readonly ModelInfo[],
): RecipeState {
  const after = recipeState(recipe, models);
  const base = after.base ?? (methodById.get(recipe.mergeMethod)?.base === 'none' ? before.base : null);
  const named = new Set([base, ...after.contributors.map((c) => c.ref)]);
  const off = before.contributors.filter((c) => !c.enabled && !named.has(c.ref));
  const stay = before.contributors.filter((c) => named.has(c.ref));
  const colored = after.contributors.reduce((filled, { ref }) => addContributor(filled, ref), {
    ...before,
    contributors: [...stay, ...off],
  });
  const colors = new Map(colored.contributors.map((c) => [c.ref, c.color]));
  const contributors = after.contributors.map((c) => ({ ...c, color: colors.get(c.ref) ?? c.color }));
  const isContributor = contributors.some((c) => c.ref === base);
  return { ...after, base: isContributor ? after.base : base, contributors: [...contributors, ...off] };
}

/** A recipe beyond the fields of the form: the reasons, and its models. */
export function WrittenRecipe({ recipe }: { recipe: Recipe }) {
  const studio = useStudio();
  return (
    <Section title="Recipe">
      <p className="small quiet">
        {reasons(recipe).join(', ')}: the form has no fields for this, so the recipe is merged as it is
        written.
      </p>
      {recipeRepositories(recipe).map((name) => (
        <ModelAccess key={name} of={name} titled />
      ))}
      <div className="row wrap">
        <Button onClick={() => setView(studio, { recipeAs: 'text' })}>Edit</Button>
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
