import { useMemo } from 'react';
import { useShallow } from 'zustand/react/shallow';
import { formatCounted } from '../../formats/quantity';
import { DEFAULT_SHARD_BYTES, parseModelRef, type Recipe } from '../../formats/recipe';
import { formatRecipe } from '../../formats/recipe-format';
import { recipeModels, recipeRepositories } from '../../formats/recipe-models';
import { parseRecipe } from '../../formats/recipe-yaml';
import { exportWarnings } from '../../merge/method-export';
import { methodById } from '../../merge/methods/index';
import { unknownAtLines } from '../../merge/recipe-names';
import type { ModelInfo } from '../../reports/models';
import { saveText } from '../local/local-files';
import { Button, CopyButton, DownloadIcon, FileButton, TextBlock } from '../parts/Button';
import { Message } from '../parts/Message';
import { Section } from '../parts/Section';
import { YamlText } from '../parts/YamlText';
import { buildRecipe, outputName, shortName } from '../state/built-recipe';
import { hubModels, isRecipeOpen, missingModels, openAllOfHub } from '../state/named-models';
import { recipeState } from '../state/opened-recipe';
import { addContributor, type RecipeState } from '../state/recipe-state';
import { editRecipe, methodOf, setView } from '../state/studio';
import { useParts, useRecipeAs, useStudio, useStudioState } from '../studio-context';
import { ModelAccess } from './ModelAccess';

/**
 * The recipe as text, the other side of the form: an edit here is an edit there, as soon as the text can be read. A
 * text that cannot has the error at its line, and the recipe stays unchanged; an edit of the form takes its place.
 */
export function RecipeText() {
  const studio = useStudio();
  const { recipe, models } = useParts('recipe', 'models');
  const written = useMemo(
    () => formatRecipe(buildRecipe(recipe, models, methodOf(recipe))),
    [recipe, models],
  );
  const isComplete = useStudioState((s) => s.recipe.asWritten !== null || isRecipeOpen(s));
  // as it was typed, comments and all, for as long as the recipe is the one that was read off it
  const typed = useStudioState((s) => s.view.typed);
  const text = typed?.of === recipe ? typed.text : written;
  const parsed = useMemo(() => parseRecipe(text), [text]);
  const { problems } = parsed;
  // where no card beside it says what opens a model
  const beside = useRecipeAs() === 'both';
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

  const doubtful = new Set(warnings.map((w) => w.line));
  return (
    <div className="stack recipe-text">
      <div className="row wrap">
        <span className="small quiet" role="status">
          {problems.length === 0
            ? warnings.length === 0
              ? isComplete
                ? 'As mergekit reads it'
                : 'Complete once its models are open'
              : formatCounted(warnings.length, 'warning')
            : `${formatCounted(problems.length, 'problem')}: not applied`}
        </span>
        <span className="spacer" />
        <CopyButton text={() => text} />
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
        {beside ? null : missing.map((name) => <ModelAccess key={name} of={name} titled />)}
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
      <dl className="stack small">
        {recipe.stages?.map((stage) => (
          <div key={stage.name}>
            <dt className="strong">{stage.name}</dt>
            <dd className="quiet">
              {stage.mergeMethod} of {names(stage)}
            </dd>
          </div>
        ))}
        <div>
          <dt className="strong">{recipe.stages ? (recipe.name ?? 'result') : 'method'}</dt>
          <dd className="quiet">
            {method?.title ?? recipe.mergeMethod}
            {recipe.stages ? ` of ${names(recipe)}` : ''}
          </dd>
        </div>
        {recipe.stages ? null : (
          <div>
            <dt className="strong">models</dt>
            <dd className="quiet">{names(recipe)}</dd>
          </div>
        )}
      </dl>
      {recipeRepositories(recipe).map((name) => (
        <ModelAccess key={name} of={name} titled />
      ))}
      {beside ? null : <TextBlock label="Recipe as it is written" text={formatRecipe(recipe)} />}
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

/** The recipe as mergekit's YAML, to copy and save, and as a command; the panel shows it. */
export function RecipeYaml() {
  const { recipe, models } = useParts('recipe', 'models');
  // which of its models are adapters, and the base's dtype, are known of opened models only
  const isKnown = useStudioState((s) => s.recipe.asWritten !== null || isRecipeOpen(s));
  if (!isKnown) {
    return (
      <Section title="Recipe">
        <p className="quiet">Known once its models are open.</p>
      </Section>
    );
  }
  const built = buildRecipe(recipe, models, methodOf(recipe));
  const yaml = formatRecipe(built);
  const warnings = exportWarnings(built, methodById);
  const refused = warnings.some((warning) => warning.refused);
  return (
    <Section title="Recipe">
      {warnings.length > 0 ? (
        <Message
          tone="warning"
          title={refused ? 'mergekit refuses this recipe' : 'In mergekit it is not quite the same merge'}
        >
          <dl className="stack small">
            {warnings.map(({ setting, consequence }) => (
              <div key={setting}>
                <dt className="strong">{setting}</dt>
                <dd className="quiet">{consequence}</dd>
              </div>
            ))}
          </dl>
        </Message>
      ) : null}
      <div className="row wrap">
        <CopyButton text={() => yaml} />
        <Button icon={DownloadIcon} onClick={() => saveText(yaml, `${outputName(recipe)}.yml`)}>
          YAML
        </Button>
      </div>
      <Commands recipe={built} name={outputName(recipe)} refused={refused} />
    </Section>
  );
}

/** The same merge from a terminal: mergekit's command, where it has the method, and ours. */
function Commands({ recipe, name, refused }: { recipe: Recipe; name: string; refused: boolean }) {
  const lines = [
    ...(refused ? [] : [{ label: 'mergekit', command: mergekitCommand(recipe, name) }]),
    { label: 'Amalgam', command: amalgamCommand(name) },
  ];
  return (
    <dl className="stack">
      {lines.map(({ label, command }) => (
        <div key={label}>
          <dt className="small quiet">{label}</dt>
          <dd className="row">
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a long line scrolls, also by keyboard. */}
            <code className="formula grow small quiet" tabIndex={0}>
              {command}
            </code>
            <CopyButton text={() => command} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

// The merge as a command: mergekit's and Amalgam's own. Pure.

/**
 * mergekit 0.1.4's command for a recipe in the file `<name>.yml`. Its shards count bytes too (`parse_kmb`: B is 10⁹), but
 * hold 5 · 10⁹ of them unless told.
 */
export function mergekitCommand(recipe: Recipe, name: string): string {
  const size = recipe.amalgam.shardBytes ?? DEFAULT_SHARD_BYTES;
  const shards = size % 1e9 === 0 ? `${size / 1e9}B` : String(size);
  // mergekit folds an adapter into a copy of its model first, and asks where to
  const adapters = recipeModels(recipe).some((ref) => parseModelRef(ref).adapter)
    ? ` --lora-merge-cache ./${name}-adapters`
    : '';
  const seed = recipe.amalgam.seed ? ` --random-seed ${recipe.amalgam.seed}` : '';
  return recipe.stages
    ? `mergekit-multi ${name}.yml --intermediate-dir ./${name}-stages --out-path ./${name} --out-shard-size ${shards}${adapters}${seed}`
    : `mergekit-yaml ${name}.yml ./${name} --out-shard-size ${shards}${adapters}${seed}`;
}

/** The same bytes from a terminal, by Amalgam's own command. */
export function amalgamCommand(name: string): string {
  return `npm run --silent amalgam -- merge ${name}.yml --out ./${name}`;
}
