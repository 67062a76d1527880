/** Light, dark, or as the system says. Kept in this browser; a browser that keeps nothing follows the system. */
import type { Theme } from './facts';
import { type Studio, setView } from './studio';

const KEY = 'amalgam.theme';

/** Takes the remembered theme and puts every change onto the page; returns a function that stops. */
export function watchTheme(studio: Studio): () => void {
  setView(studio, { theme: rememberedTheme() });
  apply(studio.store.getState().view.theme);
  return studio.store.subscribe((now, before) => {
    if (now.view.theme === before.view.theme) return;
    apply(now.view.theme);
    remember(now.view.theme);
  });
}

function apply(theme: Theme): void {
  const root = document.documentElement;
  if (theme === 'system') delete root.dataset.theme;
  else root.dataset.theme = theme;
}

function rememberedTheme(): Theme {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === 'light' || kept === 'dark' ? kept : 'system';
  } catch {
    // Storage is off (private windows, strict settings): nothing was remembered.
    return 'system';
  }
}

function remember(theme: Theme): void {
  try {
    if (theme === 'system') localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, theme);
  } catch {
    // As above: the choice holds until the tab closes.
  }
}
