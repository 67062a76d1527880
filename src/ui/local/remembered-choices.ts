/** Small choices kept in this browser. A browser that keeps nothing (private windows, strict settings) forgets them. */

/** What was kept under a key, or null. */
export function remembered(key: string): string | null {
  try {
    return localStorage.getItem(`amalgam.${key}`);
  } catch {
    return null;
  }
}

/** Keeps a text under a key; null forgets it. */
export function remember(key: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(`amalgam.${key}`);
    else localStorage.setItem(`amalgam.${key}`, value);
  } catch {
    // the choice holds until the tab closes
  }
}
