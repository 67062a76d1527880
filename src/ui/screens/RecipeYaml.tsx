import { formatRecipe } from '../../formats/recipe-yaml';
import { saveText } from '../local/save-file';
import { Button } from '../parts/Button';
import { CopyButton } from '../parts/CopyButton';
import { DownloadIcon } from '../parts/icons';
import { Section } from '../parts/Section';
import { buildRecipe, outputName } from '../state/recipe-build';
import { methodOf } from '../state/studio';
import { useFacts } from '../studio-context';

/** The recipe as mergekit's YAML, to read, copy and keep. */
export function RecipeYaml() {
  const recipe = useFacts((s) => s.recipe);
  const models = useFacts((s) => s.models);
  const yaml = formatRecipe(buildRecipe(recipe, models, methodOf(recipe)));
  return (
    <Section title="Recipe">
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
        <span className="small quiet">The same merge from a terminal; mergekit reads it too.</span>
      </div>
    </Section>
  );
}
