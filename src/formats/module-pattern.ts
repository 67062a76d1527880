import { AmalgamError } from '../errors';
import { displayName } from './names';

/** Longest pattern, and longest module path it may meet: real ones stay below 200. */
export const MAX_MODULE_PATH = 300;
/**
 * Most of each construct that multiplies the ways to match: repeats, options, groups of alternatives. Real patterns are
 * plain paths, or such as `layers\.(1|2)\..*q_proj`.
 */
const MOST = { repeats: 2, options: 4, groups: 3 };

/** A number that holds for the modules whose path matches. */
export interface ModulePattern {
  pattern: string;
  regex: RegExp;
  value: number;
}

/**
 * A key of PEFT's `rank_pattern` or `alpha_pattern`: a regular expression for the end of a module path, from a dot or
 * the beginning on, `(.*\.)?(key)$` (PEFT `utils/other.py`, get_pattern_key). The text comes from a file, so patterns
 * on which a backtracking matcher can hang are refused.
 *
 * @throws AmalgamError `AdapterUnsupported` naming the pattern
 */
export function modulePattern(pattern: string, value: number, fileName: string): ModulePattern {
  const fault = (why: string, cause?: unknown) =>
    new AmalgamError(
      'AdapterUnsupported',
      `${displayName(fileName)}: the module pattern “${displayName(pattern)}” ${why}.`,
      'Write plain module paths into rank_pattern and alpha_pattern; the numbers stay the same.',
      { cause },
    );
  if (pattern.length > MAX_MODULE_PATH) throw fault('is over-long');
  const count = (what: RegExp) => pattern.replace(/\\./g, '_').match(what)?.length ?? 0;
  if (
    count(/[*+{]/g) > MOST.repeats ||
    count(/(?<!\()\?/g) > MOST.options ||
    count(/\(/g) > MOST.groups ||
    /\)[*+{]|\\[1-9k]/.test(pattern)
  ) {
    throw fault('is too complex to be matched safely');
  }
  try {
    return { pattern, regex: new RegExp(`^(?:.*\\.)?(?:${pattern})$`), value };
  } catch (cause) {
    throw fault('is not a regular expression that can be read here', cause);
  }
}

/** The value of the first pattern that matches a path of at most {@link MAX_MODULE_PATH}, or `otherwise`. */
export function matchModule(
  patterns: readonly ModulePattern[],
  modulePath: string,
  otherwise: number,
): number {
  return patterns.find(({ regex }) => regex.test(modulePath))?.value ?? otherwise;
}
