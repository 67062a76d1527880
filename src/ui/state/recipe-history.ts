/** Undo and redo of the recipe. A slider on the move is one step. */
import type { Studio } from './studio';

/** Edits closer together than this, in milliseconds, are one step. */
const ONE_STEP_MS = 500;
/** Most saved steps; a recipe is a few hundred bytes. */
const MOST_STEPS = 200;

/** Remembers every edit of the recipe; returns a function that stops. */
export function watchHistory(studio: Studio, now: () => number = () => performance.now()): () => void {
  let last = Number.NEGATIVE_INFINITY;
  return studio.store.subscribe((after, before) => {
    // after an undo the next edit is a step of its own
    if (after.history !== before.history) last = Number.NEGATIVE_INFINITY;
    if (after.recipe === before.recipe || after.history !== before.history) return;
    const begun = before.recipe.base !== null || before.recipe.contributors.length > 0;
    const at = now();
    const sameStep = at - last < ONE_STEP_MS && after.history.past.length > 0;
    last = at;
    if (!begun) return; // the first recipe there is cannot be undone into nothing
    if (sameStep && after.history.future.length === 0) return; // it is remembered as it is
    const past = sameStep ? after.history.past : [...after.history.past, before.recipe].slice(-MOST_STEPS);
    studio.store.setState({ history: { past, future: [] } });
    last = at;
  });
}

export function undo(studio: Studio): void {
  studio.store.setState(({ recipe, history: { past, future } }) => {
    const before = past.at(-1);
    return before
      ? { recipe: before, history: { past: past.slice(0, -1), future: [...future, recipe] } }
      : {};
  });
}

export function redo(studio: Studio): void {
  studio.store.setState(({ recipe, history: { past, future } }) => {
    const next = future.at(-1);
    return next ? { recipe: next, history: { past: [...past, recipe], future: future.slice(0, -1) } } : {};
  });
}
