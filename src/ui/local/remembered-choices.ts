/** Small texts saved in this browser. A browser without storage (private windows, strict settings) forgets them. */

/** For all tabs and visits, or for this tab and its reloads. */
type Keeper = 'browser' | 'tab';

const storageOf = (keeper: Keeper) => (keeper === 'tab' ? sessionStorage : localStorage);

/** The text saved under a key, or null. */
export function remembered(key: string, keeper: Keeper = 'browser'): string | null {
  try {
    return storageOf(keeper).getItem(`amalgam.${key}`);
  } catch {
    return null;
  }
}

/** Saves a text under a key; null deletes it. */
export function remember(key: string, value: string | null, keeper: Keeper = 'browser'): void {
  try {
    if (value === null) storageOf(keeper).removeItem(`amalgam.${key}`);
    else storageOf(keeper).setItem(`amalgam.${key}`, value);
  } catch {
    // the choice holds until the tab closes
  }
}
