/**
 * How recipes pick tensors by name. mergekit's filters are substrings (its `config.py`, evaluate_setting); no tensor
 * name holds `*` or `?`, so a filter with one of them would match nothing there and is free to be a glob here.
 */

/** Whether a filter is a glob, which mergekit would take literally and so never match. `*` alone is mergekit's own word for all. */
export function isGlob(pattern: string): boolean {
  return pattern !== '*' && /[*?]/.test(pattern);
}

/**
 * Whether a filter matches a tensor name: `*` means every tensor; a pattern with `*` (any characters, also none)
 * or `?` (one character) must match the whole name; anything else is found anywhere in the name. Time grows with the
 * product of the lengths at most.
 */
export function matchesTensor(pattern: string, name: string): boolean {
  return isGlob(pattern) ? matchGlob(pattern, name) : pattern === '*' || name.includes(pattern);
}

/** Glob match that backtracks to the last star only: no more is ever needed. */
function matchGlob(pattern: string, text: string): boolean {
  let p = 0;
  let t = 0;
  let star = -1;
  let resume = 0;
  while (t < text.length) {
    if (pattern[p] === '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.length && (pattern[p] === '?' || pattern[p] === text[t])) {
      p++;
      t++;
    } else if (star >= 0) {
      p = star + 1;
      t = ++resume;
    } else return false;
  }
  while (pattern[p] === '*') p++;
  return p === pattern.length;
}
