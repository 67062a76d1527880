import { DEFAULT_SHARD_BYTES, parseModelRef, type Recipe } from '../../formats/recipe';
import { formatRecipe } from '../../formats/recipe-format';
import { recipeModels } from '../../formats/recipe-models';
import { exportWarnings } from '../../merge/method-export';
import { methodById } from '../../merge/methods/index';
import { saveText } from '../local/file-download';
import { Button, CopyButton } from '../parts/Button';
import { DownloadIcon } from '../parts/icons';
import { Message } from '../parts/Message';
import { Section } from '../parts/Section';
import { buildRecipe, outputName } from '../state/built-recipe';
import { isRecipeOpen } from '../state/named-models';
import { methodOf } from '../state/studio';
import { useParts, useStudioState } from '../studio-context';

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
