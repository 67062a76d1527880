/** Light, dark, or as the system says. Kept in this browser; a browser that keeps nothing follows the system. */
import { remember, remembered } from '../local/remembered-choices';
import { type Studio, setView } from './studio';
import type { Theme } from './studio-state';

const KEY = 'theme';

/** Takes the remembered theme and puts every change onto the page; returns a function that stops. */
export function watchTheme(studio: Studio): () => void {
  const kept = remembered(KEY);
  setView(studio, { theme: kept === 'light' || kept === 'dark' ? kept : 'system' });
  apply(studio.store.getState().view.theme);
  return studio.store.subscribe((now, before) => {
    if (now.view.theme === before.view.theme) return;
    apply(now.view.theme);
    remember(KEY, now.view.theme === 'system' ? null : now.view.theme);
  });
}

function apply(theme: Theme): void {
  const root = document.documentElement;
  if (theme === 'system') delete root.dataset.theme;
  else root.dataset.theme = theme;
}
