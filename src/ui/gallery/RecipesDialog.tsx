import { Tabs } from 'radix-ui';
import { parseRecipe } from '../../formats/recipe-yaml';
import { DialogFrame } from '../parts/DialogFrame';
import { TabLabel, TabList } from '../parts/TabList';
import { openRecipe } from '../state/opened-recipe';
import { notify, setView } from '../state/studio';
import type { ViewSlice } from '../state/studio-state';
import { useStudio } from '../studio-context';
import '../styles/gallery.css';
import { gallery } from './gallery';
import { SavedRecipes } from './SavedRecipes';

/** Whole recipes: the examples that ship with the studio, and those that were saved. */
export function RecipesDialog({ tab }: { tab: NonNullable<ViewSlice['recipes']> }) {
  const studio = useStudio();
  return (
    <DialogFrame
      title="Recipes"
      about="Opening a recipe replaces the current one; undo brings it back."
      foot={<p className="small quiet">{SAYS[tab]}</p>}
      onClose={() => setView(studio, { recipes: null })}
    >
      <Tabs.Root
        className="dialog-tabs"
        value={tab}
        onValueChange={(next) => setView(studio, { recipes: next as typeof tab })}
      >
        <TabList label="Where recipes come from">
          <Tabs.Trigger className="tab" value="examples">
            <TabLabel text="Examples" />
          </Tabs.Trigger>
          <Tabs.Trigger className="tab" value="saved">
            <TabLabel text="Saved" />
          </Tabs.Trigger>
        </TabList>
        <Tabs.Content className="dialog-body" value="examples">
          <Examples />
        </Tabs.Content>
        <Tabs.Content className="dialog-body" value="saved">
          <SavedRecipes />
        </Tabs.Content>
      </Tabs.Root>
    </DialogFrame>
  );
}

const SAYS = {
  examples: 'Every example runs on the sample models.',
  saved: 'Saved in this browser; a link holds the recipe alone.',
};

/** The gallery: one click opens an example. */
function Examples() {
  const studio = useStudio();
  const open = (yaml: string) => {
    const { recipe, problems } = parseRecipe(yaml);
    if (recipe) openRecipe(studio, recipe);
    else notify(studio, 'error', problems[0]!.message, problems[0]!.hint);
  };
  return (
    <ul className="examples">
      {gallery.map(({ id, title, shows, yaml }) => (
        <li key={id}>
          <button type="button" className="example" onClick={() => open(yaml)}>
            <strong>{title}</strong>
            <span className="small quiet">{shows}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}
