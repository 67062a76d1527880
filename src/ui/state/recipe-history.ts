/** Undo and redo of the recipe. A slider on the move is one step. */
import type { Studio } from './studio';

/** Edits closer together than this, in milliseconds, are one step. */
const ONE_STEP_MS = 500;
/** Most saved steps; a recipe is a few hundred bytes. */
const MOST_STEPS = 200;

/** Remembers every edit of the recipe, and takes the keys for undo and redo; returns a function that stops. */
export function watchHistory(studio: Studio, now: () => number = () => performance.now()): () => void {
  let last = Number.NEGATIVE_INFINITY;
  const unsubscribe = studio.store.subscribe((after, before) => {
    if (after.recipe === before.recipe || after.history !== before.history) return;
    const begun = before.recipe.base !== null || before.recipe.contributors.length > 0;
    const at = now();
    const sameStep = at - last < ONE_STEP_MS && after.history.past.length > 0;
    last = at;
    if (!begun) return; // the first recipe there is cannot be undone into nothing
    if (sameStep && after.history.future.length === 0) return; // it is remembered as it is
    const past = sameStep ? after.history.past : [...after.history.past, before.recipe].slice(-MOST_STEPS);
    studio.store.setState({ history: { past, future: [] } });
  });
  const onKey = (event: KeyboardEvent) => {
    const wanted = wantedStep(event);
    if (!wanted || isTyping(event.target)) return;
    event.preventDefault();
    last = Number.NEGATIVE_INFINITY;
    (wanted === 'undo' ? undo : redo)(studio);
  };
  addEventListener('keydown', onKey);
  return () => {
    unsubscribe();
    removeEventListener('keydown', onKey);
  };
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

/** Ctrl or Cmd with Z; with Shift, or Ctrl with Y, the other way. */
function wantedStep(event: KeyboardEvent): 'undo' | 'redo' | null {
  if (!(event.ctrlKey || event.metaKey) || event.altKey) return null;
  const key = event.key.toLowerCase();
  if (key === 'z') return event.shiftKey ? 'redo' : 'undo';
  return key === 'y' && event.ctrlKey ? 'redo' : null;
}

/** Text fields undo their own typing. */
function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement)
    return !['checkbox', 'radio', 'range', 'button'].includes(target.type);
  return target instanceof HTMLTextAreaElement || target.isContentEditable;
}
