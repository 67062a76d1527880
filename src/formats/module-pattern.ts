import { AmalgamError } from '../errors';
import { type LinearPattern, linearPattern, PatternFault } from './linear-pattern';
import { displayName } from './names';

/** Longest pattern, and longest module path it may meet: real ones stay below 200. */
export const MAX_MODULE_PATH = 300;
/**
 * Most steps that all lookups in the patterns of one adapter take, about a second. One pattern for each of 30 000 modules
 * takes less, since plain paths are looked up.
 */
const MAX_STEPS = 2e7;

/** A number that holds for the modules whose path matches. */
export interface ModulePattern {
  pattern: string;
  value: number;
}

/** Patterns of one adapter, in the order of its file. */
export interface ModulePatterns {
  readonly entries: readonly ModulePattern[];
  /** The value of the first pattern that matches a path of at most {@link MAX_MODULE_PATH}; undefined where none does. */
  find(modulePath: string): number | undefined;
}

/**
 * Keys of PEFT's `rank_pattern` or `alpha_pattern`: regular expressions for the end of a module path, from a dot or
 * the beginning on, `(.*\.)?(key)$` (PEFT `utils/other.py`, get_pattern_key). They come from a file, so they are matched
 * in linear time (`linear-pattern.ts`).
 *
 * @throws AmalgamError `AdapterUnsupported` naming the pattern; from `find` when the patterns take too long together
 */
export function modulePatterns(entries: readonly ModulePattern[], fileName: string): ModulePatterns {
  let left = MAX_STEPS;
  const spend = (steps: number): void => {
    left -= steps;
    if (left >= 0) return;
    throw new AmalgamError(
      'AdapterUnsupported',
      `${displayName(fileName)}: its ${entries.length} module patterns take too long to be matched.`,
      HINT,
    );
  };
  const plain = new PlainPaths();
  const others: { at: number; pattern: LinearPattern }[] = [];
  for (const [at, { pattern }] of entries.entries()) {
    if (/^[\w.-]{1,300}$/.test(pattern)) plain.add(pattern, at);
    else others.push({ at, pattern: compiled(pattern, fileName) });
  }
  return {
    entries,
    find(path) {
      const begins = beginnings(path);
      let found = plain.find(path, begins, spend);
      for (const { at, pattern } of others) {
        if (at >= found) break;
        if (pattern.matches(path, begins, spend)) found = at;
      }
      return entries[found]?.value;
    },
  };
}

/** The value of the first pattern that matches, or `otherwise`. */
export function matchModule(patterns: ModulePatterns, modulePath: string, otherwise: number): number {
  return patterns.find(modulePath) ?? otherwise;
}

const HINT = 'Write plain module paths into rank_pattern and alpha_pattern; the numbers stay the same.';

function compiled(pattern: string, fileName: string): LinearPattern {
  try {
    if (pattern.length > MAX_MODULE_PATH) throw new PatternFault('is over-long');
    return linearPattern(pattern);
  } catch (cause) {
    if (!(cause instanceof PatternFault)) throw cause;
    throw new AmalgamError(
      'AdapterUnsupported',
      `${displayName(fileName)}: the module pattern “${displayName(pattern)}” ${cause.message}.`,
      HINT,
      { cause },
    );
  }
}

/** Where `(.*\.)?` lets the key begin: at the start, and after each dot of the first line. */
function beginnings(path: string): number[] {
  const begins = [0];
  for (let at = 0; at < path.length && path[at] !== '\n'; at++) if (path[at] === '.') begins.push(at + 1);
  return begins;
}

/**
 * Patterns without any sign but the dot, which stands for one character. They are kept by where their dots are: with dots
 * put there, the end of a path equals the pattern or it does not match.
 */
class PlainPaths {
  readonly #byShape = new Map<string, { length: number; dots: number[]; first: Map<string, number> }>();

  add(pattern: string, at: number): void {
    const dots = [...pattern.matchAll(/\./g)].map(({ index }) => index);
    const key = `${pattern.length}:${dots}`;
    const shape = this.#byShape.get(key) ?? { length: pattern.length, dots, first: new Map() };
    this.#byShape.set(key, shape);
    if (!shape.first.has(pattern)) shape.first.set(pattern, at);
  }

  /** The place of the first pattern that matches, infinity where none does. */
  find(path: string, begins: readonly number[], spend: (steps: number) => void): number {
    let found = Number.POSITIVE_INFINITY;
    const ends = new Set(begins.map((begin) => path.length - begin));
    for (const { length, dots, first } of this.#byShape.values()) {
      spend(1);
      if (!ends.has(length)) continue;
      spend(length);
      const chars = [...path.slice(path.length - length)];
      if (dots.some((dot) => chars[dot] === '\n')) continue;
      for (const dot of dots) chars[dot] = '.';
      found = Math.min(found, first.get(chars.join('')) ?? found);
    }
    return found;
  }
}
