import '../styles/dialogs.css';
import { type FormEvent, useEffect, useState } from 'react';
import { recipeOfText } from '../../formats/recipe-yaml';
import { deleteNamed, type NamedRecipe, namedRecipes } from '../local/database';
import { Button, CloseIcon } from '../parts/Button';
import { DialogFrame, DialogTabs } from '../parts/DialogFrame';
import { useAttempt } from '../parts/hooks';
import { ErrorCard } from '../parts/Message';
import { recipeTitle } from '../state/built-recipe';
import { openRecipe } from '../state/opened-recipe';
import { copyShareLink, openSaved, saveRecipe } from '../state/recipe-draft';
import { remix } from '../state/remixed-recipe';
import { notifyError, type RecipesTab, setView } from '../state/studio';
import { useStudio, useStudioState } from '../studio-context';

// The example recipes that ship with the studio: YAML files in `recipes/`, each runnable on the sample family.

interface GalleryRecipe {
  /** The file's name without its ending. */
  id: string;
  title: string;
  /** Its point, in one line. */
  shows: string;
  /** The whole file: two lines of comment with title and line, then the recipe. */
  yaml: string;
}

const FILES: Record<string, string> = import.meta.glob('./recipes/*.yml', {
  query: '?raw',
  import: 'default',
  eager: true,
});

/** Examples in their order, the plainest first. */
const ORDER = ['linear', 'ties', 'dare_ties', 'slerp', 'gram', 'adapter', 'stack', 'stages'];

export const gallery: readonly GalleryRecipe[] = Object.entries(FILES)
  .map(([path, yaml]) => {
    const [title = '', shows = ''] = yaml.split('\n').map((line) => line.replace(/^# /, ''));
    return { id: path.replace(/^.*\/|\.yml$/g, ''), title, shows, yaml };
  })
  .sort((a, b) => ORDER.indexOf(a.id) - ORDER.indexOf(b.id));

/** Whole recipes: the examples that ship with the studio, and those that were saved. */
export function RecipesDialog({ tab }: { tab: RecipesTab }) {
  const studio = useStudio();
  return (
    <DialogFrame title="Recipes" about="Opening a recipe replaces the current one; undo brings it back.">
      <DialogTabs<RecipesTab>
        label="Where recipes come from"
        chosen={tab}
        tabs={[
          { id: 'examples', text: 'Examples', content: <Examples /> },
          { id: 'saved', text: 'Saved', content: <SavedRecipes /> },
          { id: 'hub', text: 'Of a merge on the Hub', content: <HubRecipe /> },
        ]}
        onChoose={(dialog) => setView(studio, { dialog })}
      />
    </DialogFrame>
  );
}

/** The recipe that a published merge was made by. */
function HubRecipe() {
  const studio = useStudio();
  const [name, setName] = useState('');
  const { working, error, attempt, cancel } = useAttempt();
  const open = (event: FormEvent) => {
    event.preventDefault();
    if (working) cancel();
    else void attempt(name, (signal) => remix(studio, name.trim(), signal));
  };
  return (
    <form className="stack" onSubmit={open}>
      <div className="row">
        <input
          className="field grow"
          aria-label="Merge on the Hub"
          placeholder="owner/name, or the address of its page"
          spellCheck={false}
          autoComplete="off"
          value={name}
          onChange={(event) => setName(event.target.value)}
        />
        <Button
          variant={working ? 'plain' : 'primary'}
          type="submit"
          why={name.includes('/') ? null : 'A name has an owner: owner/name.'}
        >
          {working ? 'Cancel' : 'Open its recipe'}
        </Button>
      </div>
      {error ? <ErrorCard error={error} /> : null}
    </form>
  );
}

/** The gallery: one click opens an example. */
function Examples() {
  const studio = useStudio();
  return (
    <ul className="columns">
      {gallery.map(({ id, title, shows, yaml }) => (
        <li key={id} className="grid">
          <button
            type="button"
            className="example grid panel"
            onClick={() => openRecipe(studio, recipeOfText(title, yaml))}
          >
            <strong>{title}</strong>
            <span className="small quiet">{shows}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}

/** Recipes saved in this browser by name: save the one in work, open or delete another, or take a link away. */
function SavedRecipes() {
  const studio = useStudio();
  const title = useStudioState((s) => recipeTitle(s.recipe));
  const [name, setName] = useState(title);
  const [saved, setSaved] = useState<readonly NamedRecipe[] | null>(null);
  useEffect(() => {
    namedRecipes().then(setSaved, () => setSaved([]));
  }, []);
  const taken = saved?.some((s) => s.name === name.trim()) ?? false;
  const act = (work: Promise<unknown>) =>
    void work.then(namedRecipes).then(setSaved, (thrown: unknown) => notifyError(studio, thrown));
  const save = (event: FormEvent) => {
    event.preventDefault();
    if (name.trim() !== '') act(saveRecipe(studio, name.trim()));
  };
  const open = (kept: NamedRecipe) => {
    setView(studio, { dialog: null });
    void openSaved(studio, kept);
  };
  return (
    <div className="stack loose">
      <form className="row" onSubmit={save}>
        <input
          className="field grow"
          aria-label="Name of this recipe"
          value={name}
          maxLength={120}
          onChange={(event) => setName(event.target.value)}
        />
        <Button variant="primary" type="submit" why={name.trim() === '' ? 'It needs a name.' : null}>
          {taken ? 'Replace' : 'Save'}
        </Button>
        <Button onClick={() => void copyShareLink(studio)}>Copy a link</Button>
      </form>
      {saved?.length === 0 ? (
        <p className="empty">
          Nothing saved yet. The current recipe comes back after a reload without being saved.
        </p>
      ) : (
        <ul className="stack" aria-label="Saved recipes">
          {saved?.map((kept) => (
            <li key={kept.name} className="row">
              <button type="button" className="example grid grow panel" onClick={() => open(kept)}>
                <strong className="truncate">{kept.name}</strong>
                <span className="small quiet">
                  {recipeTitle(kept.recipe)} · {kept.recipe.method} · {savedAt(kept)}
                </span>
              </button>
              <Button
                icon={CloseIcon}
                variant="quiet"
                tip="Delete"
                aria-label={`Delete ${kept.name}`}
                onClick={() => act(deleteNamed(kept.name))}
              />
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function savedAt({ at }: NamedRecipe): string {
  return new Date(at).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' });
}
