import { type FormEvent, useEffect, useState } from 'react';
import { deleteNamed, type NamedRecipe, namedRecipes, saveNamed } from '../local/saved-recipes';
import { Button } from '../parts/Button';
import { CloseIcon, CopyIcon } from '../parts/icons';
import { freeName, recipeTitle } from '../state/built-recipe';
import { copyShareLink, openKept, saveRecipe } from '../state/recipe-draft';
import { notifyError, setView } from '../state/studio';
import { useStudio, useStudioState } from '../studio-context';

/** Recipes saved in this browser by name: save the one in work, open or delete another, or take a link away. */
export function SavedRecipes() {
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
    setView(studio, { recipes: null });
    void openKept(studio, kept);
  };
  return (
    <div className="saved-recipes">
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
        <ul className="saved-list" aria-label="Saved recipes">
          {saved?.map((kept) => (
            <li key={kept.name} className="row">
              <button type="button" className="example grow" onClick={() => open(kept)}>
                <strong className="truncate">{kept.name}</strong>
                <span className="small quiet">
                  {recipeTitle(kept.recipe)} · {kept.recipe.method} · {savedAt(kept)}
                </span>
              </button>
              <Button
                variant="quiet"
                iconOnly
                tip="Duplicate"
                aria-label={`Duplicate ${kept.name}`}
                onClick={() => act(duplicate(kept))}
              >
                <CopyIcon />
              </Button>
              <Button
                variant="quiet"
                iconOnly
                tip="Delete"
                aria-label={`Delete ${kept.name}`}
                onClick={() => act(deleteNamed(kept.name))}
              >
                <CloseIcon />
              </Button>
            </li>
          ))}
        </ul>
      )}
    </div>
  );

  function duplicate(kept: NamedRecipe): Promise<void> {
    const names = saved?.map((s) => s.name) ?? [];
    return saveNamed({ ...kept, name: freeName(kept.name, names), at: Date.now() });
  }
}

function savedAt({ at }: NamedRecipe): string {
  return new Date(at).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' });
}
