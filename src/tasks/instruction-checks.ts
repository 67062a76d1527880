/**
 * Checks of instructions that are seen in an answer itself, by the names and arguments of IFEval (Zhou et al. 2023,
 * arXiv:2311.07911) as lm-evaluation-harness 0.4.13 has them (`tasks/ifeval`). Keywords are taken literally, and of a case of letters
 * the language is not asked. Checks that need a language model of their own, or a list of words, are not among them.
 */
import type { Row, RowValue } from '../foreign/parquet';
import { strip } from './python';
import { numberOf, RowFault, textOf, textsOf } from './task';

export type InstructionCheck = (answer: string) => boolean;

/** @throws RowFault for arguments that are missing */
type MakeCheck = (args: Row) => InstructionCheck;

const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\/-]/g, '\\$&');
const count = (text: string, pattern: RegExp) => text.match(pattern)?.length ?? 0;
const occurrences = (text: string, part: string) => count(text, new RegExp(escaped(part), 'giu'));
/** Python's `\w`. */
const WORD = '[\\p{L}\\p{N}_]';

/** `at least` or `less than` so many. */
function compared(args: Row, number: string, relation: string): (found: number) => boolean {
  const least = numberOf(args, number);
  const words = textOf(args, relation);
  if (words === 'at least') return (found) => found >= least;
  if (words === 'less than') return (found) => found < least;
  throw new RowFault(`its “${relation}” is neither “at least” nor “less than”`);
}

/** A check of a number of something in the answer. */
const counting =
  (found: (answer: string, args: Row) => number, number: string, relation: string): MakeCheck =>
  (args) => {
    const holds = compared(args, number, relation);
    return (answer) => holds(found(answer, args));
  };

const plain =
  (check: InstructionCheck): MakeCheck =>
  () =>
    check;

/** Parts between dividers; null where one in the middle is empty. */
function partsBetween(answer: string, divider: RegExp | string): string[] | null {
  const parts = answer.split(divider);
  const inner = parts.slice(1, -1);
  if (inner.some((part) => strip(part) === '')) return null;
  return parts.filter((part) => strip(part) !== '');
}

const CHECKS: Record<string, MakeCheck> = {
  'keywords:existence': (args) => {
    const keywords = textsOf(args, 'keywords');
    return (answer) => keywords.every((keyword) => occurrences(answer, keyword) > 0);
  },
  'keywords:frequency': counting(
    (answer, args) => occurrences(answer, strip(textOf(args, 'keyword'))),
    'frequency',
    'relation',
  ),
  'keywords:forbidden_words': (args) => {
    const patterns = textsOf(args, 'forbidden_words').map(
      (word) => new RegExp(`(?<!${WORD})${escaped(word)}(?!${WORD})`, 'iu'),
    );
    return (answer) => !patterns.some((pattern) => pattern.test(answer));
  },
  'keywords:letter_frequency': counting(
    (answer, args) => occurrences(answer, textOf(args, 'letter')),
    'let_frequency',
    'let_relation',
  ),
  'length_constraints:number_words': counting(
    (answer) => count(answer, new RegExp(`${WORD}+`, 'gu')),
    'num_words',
    'relation',
  ),
  'length_constraints:number_paragraphs': (args) => {
    const wanted = numberOf(args, 'num_paragraphs');
    return (answer) => partsBetween(answer, /\s?\*\*\*\s?/)?.length === wanted;
  },
  'length_constraints:nth_paragraph_first_word': (args) => {
    const [wanted, nth] = [numberOf(args, 'num_paragraphs'), numberOf(args, 'nth_paragraph')];
    const first = textOf(args, 'first_word').toLowerCase();
    return (answer) => {
      const paragraphs = answer.split('\n\n');
      const [word = ''] = strip(paragraphs[nth - 1] ?? '').split(/\s/);
      const bare = word
        .replace(/^'+/, '')
        .replace(/^"+/, '')
        .split(/[.,?!'"]/)[0]!;
      const there = paragraphs.filter((paragraph) => strip(paragraph) !== '').length;
      return nth <= there && there === wanted && bare.toLowerCase() === first;
    };
  },
  'detectable_content:number_placeholders': (args) => {
    const least = numberOf(args, 'num_placeholders');
    return (answer) => count(answer, /\[[^\n]*?\]/g) >= least;
  },
  'detectable_content:postscript': (args) => {
    const marker = strip(textOf(args, 'postscript_marker'));
    const spaced: Record<string, string> = { 'P.P.S': 'p\\.\\s?p\\.\\s?s', 'P.S.': 'p\\.\\s?s\\.' };
    const pattern = new RegExp(spaced[marker] ?? escaped(marker.toLowerCase()), 'u');
    return (answer) => pattern.test(answer.toLowerCase());
  },
  'detectable_format:number_bullet_lists': (args) => {
    const wanted = numberOf(args, 'num_bullets');
    const bullets = [/^\s*\*[^*][^\n]*$/gm, /^\s*-[^\n]*$/gm];
    return (answer) => bullets.reduce((sum, bullet) => sum + count(answer, bullet), 0) === wanted;
  },
  'detectable_format:constrained_response': plain((answer) =>
    ['My answer is yes.', 'My answer is no.', 'My answer is maybe.'].some((one) => answer.includes(one)),
  ),
  'detectable_format:number_highlighted_sections': (args) => {
    const least = numberOf(args, 'num_highlights');
    return (answer) => {
      const marked = [/\*[^\n*]*\*/g, /\*\*[^\n*]*\*\*/g].flatMap((pattern) => answer.match(pattern) ?? []);
      return marked.filter((text) => strip(text.replaceAll('*', '')) !== '').length >= least;
    };
  },
  'detectable_format:multiple_sections': (args) => {
    const least = numberOf(args, 'num_sections');
    const heading = new RegExp(`${escaped(strip(textOf(args, 'section_spliter')))}\\s?\\d+`, 'gu');
    return (answer) => count(answer, heading) >= least;
  },
  'detectable_format:json_format': plain((answer) => {
    const bare = strip(answer)
      .replace(/^```(json|Json|JSON)?/, '')
      .replace(/```$/, '');
    try {
      JSON.parse(strip(bare));
      return true;
    } catch {
      return false;
    }
  }),
  'detectable_format:title': plain((answer) =>
    (answer.match(/<<[^\n]+>>/g) ?? []).some((title) => strip(title.replace(/^<+|>+$/g, '')) !== ''),
  ),
  'combination:two_responses': plain((answer) => {
    const parts = partsBetween(answer, '******');
    return parts?.length === 2 && strip(parts[0]!) !== strip(parts[1]!);
  }),
  'combination:repeat_prompt': (args) => {
    const repeated = strip(textOf(args, 'prompt_to_repeat')).toLowerCase();
    return (answer) => strip(answer).toLowerCase().startsWith(repeated);
  },
  'startend:end_checker': (args) => {
    const end = strip(textOf(args, 'end_phrase')).toLowerCase();
    return (answer) =>
      strip(answer)
        .replace(/^"+|"+$/g, '')
        .toLowerCase()
        .endsWith(end);
  },
  'startend:quotation': plain((answer) => /^".*"$/s.test(strip(answer))),
  'change_case:english_capital': plain((answer) => isCased(answer, answer.toUpperCase())),
  'change_case:english_lowercase': plain((answer) => isCased(answer, answer.toLowerCase())),
  'punctuation:no_comma': plain((answer) => !answer.includes(',')),
};

const isCased = (text: string, as: string) => text === as && text.toUpperCase() !== text.toLowerCase();

/** The checks of a row: `instruction_id_list`, and `kwargs` with the arguments of each. @throws RowFault */
export function checksOf(row: Row): InstructionCheck[] {
  const names = textsOf(row, 'instruction_id_list');
  const all = Array.isArray(row.kwargs) ? row.kwargs : [];
  return names.map((name, i) => {
    const make = Object.hasOwn(CHECKS, name) ? CHECKS[name] : undefined;
    if (!make) throw new RowFault(`there is no check “${name}” here`);
    return make(argumentsOf(all[i]));
  });
}

const argumentsOf = (value: RowValue | undefined): Row =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};

/** Answers of which one that follows is enough: without the first or last line, without asterisks (IFEval's loose accuracy). */
function loosened(answer: string): string[] {
  const lines = answer.split('\n');
  const cut = [lines.slice(1), lines.slice(0, -1), lines.slice(1, -1)].map((some) => strip(some.join('\n')));
  return [answer, ...cut].flatMap((text) => [text, text.replaceAll('*', '')]);
}

/** Shares of the checks that an answer follows, and whether it follows all; an empty answer follows none. */
export function followed(checks: readonly InstructionCheck[], answer: string): Record<string, number> {
  const share = (texts: readonly string[]) => {
    const there = texts.filter((text) => strip(text) !== '');
    return checks.filter((check) => there.some(check)).length / checks.length;
  };
  const [strict, loose] = [share([answer]), share(loosened(answer))];
  return {
    prompt_level_strict_acc: Number(strict === 1),
    inst_level_strict_acc: strict,
    prompt_level_loose_acc: Number(loose === 1),
    inst_level_loose_acc: loose,
  };
}
