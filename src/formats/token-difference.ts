/** Two vocabularies side by side: tokens that only one has, and tokens under other ids. */
import { displayName } from './names';

interface TokenSample {
  count: number;
  /** The first few. */
  examples: string[];
}

export interface TokenDifference {
  onlyInFirst: TokenSample;
  onlyInSecond: TokenSample;
  /** In both, under another id. */
  moved: TokenSample;
}

const EXAMPLES = 8;

/** How the second vocabulary (token → id) differs from the first. */
export function tokenDifference(
  first: ReadonlyMap<string, number>,
  second: ReadonlyMap<string, number>,
): TokenDifference {
  const lacking = (from: ReadonlyMap<string, number>, other: ReadonlyMap<string, number>) =>
    sample([...from.keys()].filter((token) => !other.has(token)));
  return {
    onlyInFirst: lacking(first, second),
    onlyInSecond: lacking(second, first),
    moved: sample([...first].filter(([token, id]) => (second.get(token) ?? id) !== id).map(([t]) => t)),
  };
}

/** The same in sentences, with a name for each side (“the base”); none where the two agree. */
export function tokenDifferenceWords(difference: TokenDifference, first: string, second: string): string[] {
  const words: string[] = [];
  const say = ({ count, examples }: TokenSample, one: string, many: string) => {
    if (count === 0) return;
    const end = count > examples.length ? ' …' : '.';
    const names = examples.map((token) => `“${displayName(token, 40)}”`).join(', ');
    words.push(`${count === 1 ? one : `${count} ${many}`}: ${names}${end}`);
  };
  say(difference.onlyInFirst, `One token is in ${first} only`, `tokens are in ${first} only`);
  say(difference.onlyInSecond, `One token is in ${second} only`, `tokens are in ${second} only`);
  say(
    difference.moved,
    `One token has a different id in ${second}`,
    `tokens have a different id in ${second}`,
  );
  return words;
}

function sample(tokens: string[]): TokenSample {
  return { count: tokens.length, examples: tokens.slice(0, EXAMPLES) };
}
