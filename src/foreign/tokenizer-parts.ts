/**
 * How a tokenizer.json changes a text and splits it, as Rust's `tokenizers` 0.23 does. Models and the translation of expressions
 * are those of `@huggingface/tokenizers` 0.2.0; each other part has a note where that library (“upstream”) does otherwise.
 */
import { SplitPreTokenizer } from '@huggingface/tokenizers';
import { BYTE_LETTERS } from '../formats/byte-letters';

/** A part as the file has it. */
export interface Step {
  type: string;
  [field: string]: unknown;
}

/** Some of a text. */
interface Piece {
  text: string;
  /** Whether the whole text starts with it. */
  starts: boolean;
}

/** A token that is found in a text before anything else happens to it. */
export interface FoundToken {
  id: number;
  content: string;
  single_word: boolean;
  lstrip: boolean;
  rstrip: boolean;
  normalized: boolean;
  special: boolean;
}

const SPACE = '\\p{White_Space}';
const trimmed = (text: string, isLeft: boolean, isRight: boolean) =>
  text
    .replace(isLeft ? new RegExp(`^${SPACE}+`, 'u') : '', '')
    .replace(isRight ? new RegExp(`${SPACE}+$`, 'u') : '', '');
/** Upstream: `toLowerCase` of the whole text, where a sigma at the end of a word is another letter. */
const lowered = (text: string) => Array.from(text, (char) => char.toLowerCase()).join('');

export function field(step: Step, name: string): Step[] {
  return Array.isArray(step[name]) ? (step[name] as Step[]) : [];
}

export function unknown(kind: string, { type }: Step): Error {
  return new Error(`it has the ${kind} ${type}, which is not known here`);
}

/** How a text is changed ahead of its splitting. @throws Error naming what is not known */
export function normalizer(step: Step | null | undefined): (text: string) => string {
  if (!step) return (text) => text;
  switch (step.type) {
    case 'Sequence': {
      const steps = field(step, 'normalizers').map(normalizer);
      return (text) => steps.reduce((changed, change) => change(changed), text);
    }
    case 'NFC':
    case 'NFD':
    case 'NFKC':
    case 'NFKD': {
      const { type } = step;
      return (text) => text.normalize(type);
    }
    case 'Lowercase':
      return lowered;
    case 'StripAccents':
      return (text) => text.replace(/\p{M}/gu, '');
    // upstream: JavaScript's own idea of a space
    case 'Strip':
      return (text) => trimmed(text, step.strip_left === true, step.strip_right === true);
    // upstream: also of an empty text
    case 'Prepend':
      return (text) => (text === '' ? '' : `${step.prepend}${text}`);
    // upstream: `$&` in the content is read as what was found
    case 'Replace': {
      const pattern = expression(step);
      return (text) => text.replace(pattern, () => String(step.content));
    }
    case 'BertNormalizer':
      return bertNormalizer(step);
    case 'Precompiled':
      return precompiled(step);
    default:
      throw unknown('normalizer', step);
  }
}

/** Upstream: Chinese characters beyond 16 bits stay together, and letters are made small before accents are taken off. */
function bertNormalizer({ clean_text, handle_chinese_chars, strip_accents, lowercase }: Step) {
  const control = /(?![\t\n\r])[\0\ufffd\p{Cc}\p{Cf}\p{Co}\p{Cs}]/gu;
  // one block begins 256 characters late, as in Rust
  const chinese =
    /[\u4e00-\u9fff\u3400-\u4dbf\u{20000}-\u{2a6df}\u{2a700}-\u{2b73f}\u{2b740}-\u{2b81f}\u{2b920}-\u{2ceaf}\uf900-\ufaff\u{2f800}-\u{2fa1f}]/gu;
  return (text: string) => {
    let changed = text;
    if (clean_text === true) changed = changed.replace(control, '').replace(/\p{White_Space}/gu, ' ');
    if (handle_chinese_chars === true) changed = changed.replace(chinese, ' $& ');
    if (strip_accents ?? lowercase) changed = changed.normalize('NFD').replace(/\p{Mn}/gu, '');
    return lowercase === true ? lowered(changed) : changed;
  };
}

/**
 * SentencePiece's table of replacements: a double array over UTF-8 bytes (Darts), and the texts that its values point at.
 * Upstream: NFKC and lists of characters, whatever the table says. Here as in Rust (spm_precompiled): short graphemes first,
 * then their characters, by the shortest key that they begin with.
 */
function precompiled({ precompiled_charsmap }: Step) {
  const bytes = Uint8Array.from(atob(String(precompiled_charsmap)), (char) => char.charCodeAt(0));
  const begin = 4 + new DataView(bytes.buffer).getUint32(0, true);
  const units = new Uint32Array(bytes.slice(4, begin).buffer);
  const encoder = new TextEncoder();
  const texts = new TextDecoder();
  const offset = (unit: number) => (unit >>> 10) << ((unit & 0x200) >>> 6);
  const found = (key: Uint8Array): string | undefined => {
    let node = offset(units[0]!);
    for (const byte of key) {
      node ^= byte;
      const unit = units[node] ?? 0;
      if (byte === 0 || (unit & 0x800000ff) !== byte) return undefined;
      node ^= offset(unit);
      if (((unit >>> 8) & 1) === 0) continue;
      const at = begin + (units[node]! & 0x7fffffff);
      return texts.decode(bytes.subarray(at, bytes.indexOf(0, at)));
    }
    return undefined;
  };
  const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' });
  return (text: string) =>
    Array.from(graphemes.segment(text), ({ segment }) => {
      const key = encoder.encode(segment);
      const whole = key.length < 6 ? found(key) : undefined;
      return whole ?? Array.from(segment, (char) => found(encoder.encode(char)) ?? char).join('');
    }).join('');
}

/** `{"Regex": …}` or `{"String": …}` as an expression of JavaScript. */
export function expression({ pattern }: Step): RegExp {
  const { pattern: read } = new SplitPreTokenizer({ type: 'Split', pattern, invert: false } as never);
  if (!read) throw new Error('it has a pattern that is neither a Regex nor a String');
  return read;
}

const BYTES_OF_GPT2 = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
const PUNCTUATION = '[\\p{P}!-/:-@\\[-`{-~]';
const split = (Regex: string, behavior: string, invert = false): Step => ({
  ...{ type: 'Split', pattern: { Regex }, behavior, invert },
});

/** How a text is split into words. @throws Error naming what is not known */
export function preTokenizer(step: Step | null | undefined): (pieces: readonly Piece[]) => Piece[] {
  if (!step) return (pieces) => [...pieces];
  const each = (texts: (piece: Piece) => string[]) => (pieces: readonly Piece[]) =>
    pieces.flatMap((piece) => texts(piece).map((text, i) => ({ text, starts: piece.starts && i === 0 })));
  const steps = (...parts: Step[]) => {
    const all = parts.map(preTokenizer);
    return (pieces: readonly Piece[]) => all.reduce((made, one) => one(made), [...pieces]);
  };
  switch (step.type) {
    case 'Sequence':
      return steps(...field(step, 'pretokenizers'));
    case 'Split':
      return splitter(expression(step), String(step.behavior), step.invert === true);
    // upstream: digits are \d, which leaves out those of other scripts, and numerals
    case 'Digits':
      return steps(split(step.individual_digits === true ? '\\p{N}' : '\\p{N}+', 'Isolated'));
    // upstream: whatever the behavior, signs that follow each other stay together
    case 'Punctuation':
      return steps(split(PUNCTUATION, String(step.behavior ?? 'Isolated')));
    case 'BertPreTokenizer':
      return steps(split('\\s', 'Removed'), split(PUNCTUATION, 'Isolated'));
    // upstream: \w of ASCII
    case 'Whitespace': {
      const word = '\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}';
      return splitter(new RegExp(`[${word}]+|[^${word}${SPACE}]+`, 'gu'), 'Removed', true);
    }
    case 'WhitespaceSplit':
      return steps(split('\\s', 'Removed'));
    case 'CharDelimiterSplit':
      return steps({ ...split('', 'Removed'), pattern: { String: step.delimiter } });
    // upstream: counted in halves of characters
    case 'FixedLength':
      return steps(split(`[\\s\\S]{1,${Number(step.length ?? 5)}}`, 'Isolated'));
    // upstream: every piece of the first section counts as first, and nothing is split
    case 'Metaspace': {
      const mark = String(step.replacement ?? '\u2581');
      const scheme = step.add_prefix_space === false ? 'never' : (step.prepend_scheme ?? 'always');
      const marked = each(({ text, starts }) => {
        const spaced = text.replaceAll(' ', mark);
        const isMarked = spaced.startsWith(mark) || !(scheme === 'always' || (scheme === 'first' && starts));
        return [isMarked ? spaced : mark + spaced];
      });
      if (step.split === false) return marked;
      const apart = steps({ ...split('', 'MergedWithNext'), pattern: { String: mark } });
      return (pieces) => apart(marked(pieces));
    }
    // upstream: JavaScript's own idea of a space
    case 'ByteLevel': {
      const spaced = each(({ text }) => [step.add_prefix_space && !text.startsWith(' ') ? ` ${text}` : text]);
      const apart = step.use_regex === false ? steps() : steps(split(BYTES_OF_GPT2, 'Isolated'));
      const encoder = new TextEncoder();
      const encoded = each(({ text }) => [
        Array.from(encoder.encode(text), (byte) => BYTE_LETTERS[byte]).join(''),
      ]);
      return (pieces) => encoded(apart(spaced(pieces)));
    }
    default:
      throw unknown('pre-tokenizer', step);
  }
}

/** Upstream: all behaviors but `Removed` as `Isolated`, and `Removed` whatever `invert` says. */
function splitter(pattern: RegExp, behavior: string, invert: boolean) {
  if (!['Removed', 'Isolated', 'Contiguous', 'MergedWithPrevious', 'MergedWithNext'].includes(behavior)) {
    throw new Error(`it splits with the behavior ${behavior}, which is not known here`);
  }
  return (pieces: readonly Piece[]) =>
    pieces.flatMap(({ text, starts }) =>
      ranges(text, pattern, behavior, invert).flatMap(({ begin, end }) =>
        begin < end ? { text: text.slice(begin, end), starts: starts && begin === 0 } : [],
      ),
    );
}

interface Range {
  begin: number;
  end: number;
  isMatch: boolean;
}

function ranges(text: string, pattern: RegExp, behavior: string, invert: boolean): Range[] {
  const found: Range[] = [];
  let done = 0;
  for (const { index, 0: match } of text.matchAll(pattern)) {
    if (index > done) found.push({ begin: done, end: index, isMatch: invert });
    done = index + match.length;
    found.push({ begin: index, end: done, isMatch: !invert });
  }
  if (done < text.length) found.push({ begin: done, end: text.length, isMatch: invert });
  switch (behavior) {
    case 'Removed':
      return found.filter(({ isMatch }) => !isMatch);
    case 'Contiguous':
      return joined(found, (range, last) => range.isMatch === last.isMatch);
    case 'MergedWithPrevious':
      return joined(found, (range, last) => range.isMatch && !last.isMatch);
    case 'MergedWithNext':
      return joined(found.reverse(), (range, last) => range.isMatch && !last.isMatch).reverse();
    default:
      return found;
  }
}

/** Each range is one with those before, or begins a new one; what is joined counts as the range that came last. */
function joined(found: readonly Range[], joins: (range: Range, last: Range) => boolean): Range[] {
  const made: Range[] = [];
  for (const range of found) {
    const last = made.at(-1);
    if (!last || !joins(range, last)) {
      made.push({ ...range });
      continue;
    }
    last.begin = Math.min(last.begin, range.begin);
    last.end = Math.max(last.end, range.end);
    last.isMatch = range.isMatch;
  }
  return made;
}

type Trie = Map<string, Trie> & { token?: FoundToken };

/**
 * Ids of tokens in a text, and what is between them; of those that begin together the longest. Upstream: `single_word` is not
 * read, and spaces beside a token are those of JavaScript.
 */
export function tokenFinder(tokens: readonly FoundToken[]): (piece: Piece) => (Piece | number)[] {
  const trie: Trie = new Map();
  for (const token of tokens) {
    let node = trie;
    for (const unit of token.content.split('')) {
      const next: Trie = node.get(unit) ?? new Map();
      node.set(unit, next);
      node = next;
    }
    if (node !== trie) node.token = token;
  }
  return ({ text, starts }) => {
    const found: (Piece | number)[] = [];
    let done = 0;
    const tell = (end: number) => {
      if (done < end) found.push({ text: text.slice(done, end), starts: starts && done === 0 });
    };
    for (let at = 0; at < text.length; ) {
      const token = longest(trie, text, at);
      const begin = at;
      at += token?.content.length ?? 1;
      if (!token || (token.single_word && isInWord(text, begin, at))) continue;
      const { lstrip, rstrip } = token;
      // as Rust does, which may find again what a token has taken on its right
      tell(lstrip ? done + trimmed(text.slice(done, begin), false, true).length : begin);
      found.push(token.id);
      done = rstrip ? text.length - trimmed(text.slice(at), true, false).length : at;
    }
    tell(text.length);
    return found;
  };
}

function longest(trie: Trie, text: string, begin: number): FoundToken | undefined {
  let found: FoundToken | undefined;
  let node: Trie | undefined = trie;
  for (let at = begin; at < text.length; at++) {
    node = node.get(text.charAt(at));
    if (!node) break;
    found = node.token ?? found;
  }
  return found;
}

const WORD = '[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}]';
const WORD_BEHIND = new RegExp(`${WORD}$`, 'u');
const WORD_AHEAD = new RegExp(`^${WORD}`, 'u');

function isInWord(text: string, begin: number, end: number): boolean {
  // a character has two units at most
  return (
    WORD_BEHIND.test(text.slice(Math.max(0, begin - 2), begin)) || WORD_AHEAD.test(text.slice(end, end + 2))
  );
}
