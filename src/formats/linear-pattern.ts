/**
 * Regular expressions from files, matched in time that grows with pattern × text whatever they are: a set of states moves
 * through the text once (Thompson 1968), nothing is tried again. Python's syntax as far as that allows: no look-around, no
 * back-references, no word boundaries, no flags. `\d`, `\w` and `\s` are those of ASCII.
 */

/** Most states of one pattern: `{m,n}` writes its part out that often. */
const MAX_STATES = 2000;

type CharTest = (code: number) => boolean;
/** Where a state leads: on after a character that passes, at a cost in steps, or at once. */
type State =
  | { kind: 'char'; test: CharTest; cost: number; next: number }
  | { kind: 'split'; next: number[] }
  | { kind: 'begin' | 'end'; next: number }
  | { kind: 'match' };

/** A part that continues at `next`: adds its states and returns the first. */
type Fragment = (next: number) => number;

export interface LinearPattern {
  /**
   * Whether the whole rest of `text` matches from one of the places where a match may begin.
   * @param begins ascending
   * @param spend is told of the steps, one for each way looked at and each part of a class; what it throws ends the match
   */
  matches(text: string, begins: readonly number[], spend: (steps: number) => void): boolean;
}

/** @throws PatternFault naming what cannot be matched */
export function linearPattern(source: string): LinearPattern {
  const states: State[] = [{ kind: 'match' }];
  const add = (state: State): number => {
    if (states.length >= MAX_STATES) throw new PatternFault('is too large once its repeats are written out');
    return states.push(state) - 1;
  };
  const first = parse(source, add, (at, state) => {
    states[at] = state;
  })(0);

  return {
    matches(text, begins, spend) {
      // the last position at which a state was reached
      const marks = new Int32Array(states.length).fill(-1);
      let current: number[] = [];
      let steps = 0;
      const follow = (list: number[], start: number, at: number): void => {
        const open = [start];
        for (let state = open.pop(); state !== undefined; state = open.pop()) {
          steps++;
          if (marks[state] === at) continue;
          marks[state] = at;
          const it = states[state]!;
          if (it.kind === 'split') open.push(...it.next);
          else if (it.kind === 'begin') at === 0 && open.push(it.next);
          else if (it.kind === 'end') at === text.length && open.push(it.next);
          else list.push(state);
        }
      };
      let begin = 0;
      for (let at = 0; ; at++) {
        if (begins[begin] === at) {
          begin++;
          follow(current, first, at);
        }
        spend(1 + steps);
        steps = 0;
        if (at === text.length) return current.includes(0);
        const next: number[] = [];
        const code = text.charCodeAt(at);
        for (const state of current) {
          const it = states[state]!;
          if (it.kind !== 'char') continue;
          steps += it.cost;
          if (it.test(code)) follow(next, it.next, at + 1);
        }
        if (next.length === 0 && begin >= begins.length) return false;
        current = next;
      }
    },
  };
}

export class PatternFault extends Error {}

const CLASSES: Record<string, CharTest> = {
  d: (c) => c >= 48 && c <= 57,
  w: (c) => (c >= 48 && c <= 57) || (c >= 65 && c <= 90) || (c >= 97 && c <= 122) || c === 95,
  s: (c) => (c >= 9 && c <= 13) || c === 32,
};
const CONTROLS: Record<string, string> = { n: '\n', t: '\t', r: '\r', f: '\f', v: '\v' };
const DOT: CharTest = (c) => c !== 10;

function parse(
  source: string,
  add: (state: State) => number,
  set: (at: number, state: State) => void,
): Fragment {
  let at = 0;
  const peek = () => source[at];
  const either = (ways: Fragment[]): Fragment =>
    ways.length === 1 ? ways[0]! : (next) => add({ kind: 'split', next: ways.map((way) => way(next)) });
  const sequence =
    (parts: Fragment[]): Fragment =>
    (next) =>
      parts.reduceRight((after, part) => part(after), next);
  const star =
    (part: Fragment): Fragment =>
    (next) => {
      const loop = add({ kind: 'split', next: [] });
      set(loop, { kind: 'split', next: [part(loop), next] });
      return loop;
    };
  // one loop, not a fragment in a fragment: the stack has room for some hundred of those
  const repeat =
    (part: Fragment, least: number, most: number): Fragment =>
    (next) => {
      const isOpen = most === Number.POSITIVE_INFINITY;
      let after = isOpen ? star(part)(next) : next;
      for (let i = least; !isOpen && i < Math.min(most, least + MAX_STATES); i++) {
        after = add({ kind: 'split', next: [part(after), next] });
      }
      for (let i = 0; i < Math.min(least, MAX_STATES); i++) {
        const begin = part(after);
        // nothing, as often as one likes, is nothing: `((){2000}){2000}` adds no states that could be counted
        if (begin === after) break;
        after = begin;
      }
      return after;
    };

  const alternatives = (): Fragment => {
    const ways: Fragment[] = [];
    do {
      const parts: Fragment[] = [];
      while (at < source.length && peek() !== '|' && peek() !== ')') parts.push(quantified());
      ways.push(sequence(parts));
    } while (peek() === '|' && ++at);
    return either(ways);
  };

  const quantified = (): Fragment => {
    const part = atom();
    const range = quantifier();
    if (!range) return part;
    if (peek() === '?') at++;
    else if (peek() === '+') throw new PatternFault('uses a possessive repeat');
    if (quantifier()) throw new PatternFault('repeats a repeat');
    return repeat(part, ...range);
  };

  /** The repeat that stands here, if one does. */
  const quantifier = (): [number, number] | undefined => {
    const sign = peek();
    if (sign === '*' || sign === '+' || sign === '?') {
      at++;
      return [sign === '+' ? 1 : 0, sign === '?' ? 1 : Number.POSITIVE_INFINITY];
    }
    const [whole, low = '', comma, high = ''] = /^\{(\d*)(,?)(\d*)\}/.exec(source.slice(at, at + 16)) ?? [];
    // {} and {,x} without digits are text, as in Python
    if (whole === undefined || (low === '' && high === '' && !comma)) return undefined;
    at += whole.length;
    const least = Number(low || 0);
    const most = comma ? (high === '' ? Number.POSITIVE_INFINITY : Number(high)) : least;
    if (most < least) throw new PatternFault('has a repeat of more than its most');
    return [least, most];
  };

  const atom = (): Fragment => {
    const char = source[at++]!;
    if (char === '(') return group();
    if (char === '[') {
      const begin = at;
      const test = charClass();
      return one(test, at - begin);
    }
    if (char === '.') return one(DOT);
    if (char === '^') return (next) => add({ kind: 'begin', next });
    if (char === '$') return (next) => add({ kind: 'end', next });
    if (char === '\\') return escaped();
    if (char === '*' || char === '+' || char === '?') throw new PatternFault('repeats nothing');
    const code = char.charCodeAt(0);
    return one((c) => c === code);
  };

  const one =
    (test: CharTest, cost = 1): Fragment =>
    (next) =>
      add({ kind: 'char', test, cost, next });

  const group = (): Fragment => {
    if (peek() === '?') {
      const [opening] = /^\?(?::|P<\w+>)/.exec(source.slice(at)) ?? [];
      if (opening === undefined) {
        const looks = /^\?<?[=!]/.test(source.slice(at));
        throw new PatternFault(
          looks ? 'looks around (?=, ?!, ?<=, ?<!)' : 'has a group of a kind that is not supported',
        );
      }
      at += opening.length;
    }
    const inside = alternatives();
    if (source[at++] !== ')') throw new PatternFault('has a group that is not closed');
    return inside;
  };

  const escaped = (): Fragment => {
    const char = source[at++];
    if (char === 'A') return (next) => add({ kind: 'begin', next });
    if (char === 'Z') return (next) => add({ kind: 'end', next });
    return one(escapedChar(char));
  };

  const escapedChar = (char: string | undefined): CharTest => {
    if (char === undefined) throw new PatternFault('ends in a backslash');
    const known = CLASSES[char.toLowerCase()];
    if (known && Object.hasOwn(CLASSES, char.toLowerCase()))
      return char in CLASSES ? known : (c) => !known(c);
    if (/[1-9]/.test(char)) throw new PatternFault('refers back to a group');
    if (/[bB]/.test(char)) throw new PatternFault('looks for word boundaries');
    if (/[A-Za-z0]/.test(char) && !Object.hasOwn(CONTROLS, char)) {
      throw new PatternFault(`has the escape \\${char}, which is not supported`);
    }
    const code = (CONTROLS[char] ?? char).charCodeAt(0);
    return (c) => c === code;
  };

  const charClass = (): CharTest => {
    const isNegated = peek() === '^' && Boolean(++at);
    const tests: CharTest[] = [];
    for (let isFirst = true; peek() !== ']' || isFirst; isFirst = false) {
      if (at >= source.length) throw new PatternFault('has a class that is not closed');
      const char = source[at++]!;
      if (char === '\\') {
        tests.push(escapedChar(source[at++]));
        continue;
      }
      const low = char.charCodeAt(0);
      const isRange = peek() === '-' && source[at + 1] !== ']' && at + 1 < source.length;
      if (!isRange) {
        tests.push((c) => c === low);
        continue;
      }
      if (source[at + 1] === '\\') throw new PatternFault('has a range that ends in an escape');
      const high = source.charCodeAt(at + 1);
      at += 2;
      if (high < low) throw new PatternFault('has a range that runs backwards');
      tests.push((c) => c >= low && c <= high);
    }
    at++;
    return (c) => tests.some((test) => test(c)) !== isNegated;
  };

  const whole = alternatives();
  if (at < source.length) throw new PatternFault('closes a group that is not open');
  return whole;
}
