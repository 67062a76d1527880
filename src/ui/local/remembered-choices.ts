/** Small choices saved in this browser. A browser without storage (private windows, strict settings) forgets them. */

/** The text saved under a key, or null. */
export function remembered(key: string): string | null {
  try {
    return localStorage.getItem(`amalgam.${key}`);
  } catch {
    return null;
  }
}

/** Saves a text under a key; null deletes it. */
export function remember(key: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(`amalgam.${key}`);
    else localStorage.setItem(`amalgam.${key}`, value);
  } catch {
    // the choice holds until the tab closes
  }
}
