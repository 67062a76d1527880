/** Patterns of module paths in the form of PEFT's `rank_pattern` and `alpha_pattern`. */

/** A pattern without any sign but the dot, which stands for one character. */
export const isPlainPattern = (pattern: string): boolean => /^[\w.-]{1,300}$/.test(pattern);

/**
 * For each path the place of the first pattern that matches, −1 where none does: `(.*\.)?(key)$` from the beginning on
 * (PEFT `utils/other.py`, get_pattern_key). In the thread of foreign-text.ts: an expression may take for ever.
 * @returns the pattern that is no expression, where there is one
 */
export function firstMatches(
  patterns: readonly string[],
  paths: readonly string[],
): { first: number[] } | { invalid: string } {
  const compiled: RegExp[] = [];
  for (const pattern of patterns) {
    try {
      compiled.push(new RegExp(`^(.*\\.)?(${fromPython(pattern)})$`, 'u'));
    } catch {
      return { invalid: pattern };
    }
  }
  return { first: paths.map((path) => compiled.findIndex((expression) => expression.test(path))) };
}

/**
 * A Python expression in JavaScript's syntax. What is not the same there is a syntax error with the flag `u`, and refused:
 * inline flags, possessive repeats, conditions.
 */
function fromPython(pattern: string): string {
  return pattern
    .replace(/\(\?P<(\w+)>/g, '(?<$1>')
    .replace(/\(\?P=(\w+)\)/g, '\\k<$1>')
    .replace(/\\(.)/gsu, (whole, char: string) => {
      if (char === 'A') return '^';
      if (char === 'Z') return '$';
      // everything but letters and digits may be escaped there, only signs of the syntax here
      return /[A-Za-z0-9\\^$.*+?()[\]{}|/]/.test(char) ? whole : `\\u{${char.codePointAt(0)!.toString(16)}}`;
    });
}

/** Plain patterns by where their dots are: with dots put there, the end of a path equals the pattern or does not match. */
export class PlainPaths {
  readonly #byShape = new Map<string, { length: number; dots: number[]; first: Map<string, number> }>();

  add(pattern: string, at: number): void {
    const dots = [...pattern.matchAll(/\./g)].map(({ index }) => index);
    const key = `${pattern.length}:${dots}`;
    const shape = this.#byShape.get(key) ?? { length: pattern.length, dots, first: new Map() };
    this.#byShape.set(key, shape);
    if (!shape.first.has(pattern)) shape.first.set(pattern, at);
  }

  /** Shapes that each path is compared with. */
  get size(): number {
    return this.#byShape.size;
  }

  /** The place of the first pattern that matches; infinity where none does. */
  find(path: string): number {
    let found = Number.POSITIVE_INFINITY;
    for (const { length, dots, first } of this.#byShape.values()) {
      const begin = path.length - length;
      if (begin < 0 || (begin > 0 && path[begin - 1] !== '.')) continue;
      const chars = [...path.slice(begin)];
      for (const dot of dots) chars[dot] = '.';
      found = Math.min(found, first.get(chars.join('')) ?? found);
    }
    return found;
  }
}
