import { formatRecipe } from '../../formats/recipe-format';
import { exportWarnings } from '../../merge/method-export';
import { methodById } from '../../merge/methods/index';
import { saveText } from '../local/file-download';
import { Button } from '../parts/Button';
import { CopyButton } from '../parts/CopyButton';
import { DownloadIcon } from '../parts/icons';
import { Message } from '../parts/Message';
import { Section } from '../parts/Section';
import { buildRecipe, outputName } from '../state/built-recipe';
import { isRecipeOpen } from '../state/named-models';
import { methodOf } from '../state/studio';
import { useStudioState } from '../studio-context';
import { Commands } from './Commands';

/** The recipe as mergekit's YAML, to read, copy and keep. */
export function RecipeYaml() {
  const recipe = useStudioState((s) => s.recipe);
  const models = useStudioState((s) => s.models);
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
          <dl className="terms">
            {warnings.map(({ setting, consequence }) => (
              <div key={setting}>
                <dt>{setting}</dt>
                <dd>{consequence}</dd>
              </div>
            ))}
          </dl>
        </Message>
      ) : null}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region is reached by keyboard too. */}
      <section className="yaml" tabIndex={0} aria-label="Recipe as YAML">
        <pre>{yaml}</pre>
      </section>
      <div className="row wrap">
        <CopyButton text={() => yaml} />
        <Button onClick={() => saveText(yaml, `${outputName(recipe)}.yml`)}>
          <DownloadIcon />
          YAML
        </Button>
      </div>
      <Commands recipe={built} name={outputName(recipe)} refused={refused} />
    </Section>
  );
}
