/**
 * Tasks whose answers a model writes: exact match of a number behind `####` (GSM8K), and instructions that are checked (IFEval);
 * as lm-evaluation-harness 0.4.13 asks and scores them (`generate_until`).
 */
import type { Row } from '../foreign/parquet';
import { checksOf, followed } from './instruction-checks';
import { strip } from './python';
import { numberOf, type Question, RowFault, type Task, textOf } from './task';

/** Tokens of an answer, unless the row says `max_gen_toks`. */
const MOST_TOKENS = { exact: 256, instructions: 1280 };

type Written = Pick<Task, 'outputType' | 'metrics' | 'columns' | 'ask'>;

const mostTokens = (row: Row, usual: number) =>
  row.max_gen_toks === undefined || row.max_gen_toks === null ? usual : numberOf(row, 'max_gen_toks');

/** A question whose answer ends in `#### 72`. */
export const exactMatch: Written = {
  outputType: 'generate_until',
  metrics: ['exact_match,strict-match', 'exact_match,flexible-extract'],
  columns: ['question', 'answer'],
  ask(row): Question {
    const answer = textOf(row, 'answer');
    if (!answer.includes('#### ')) throw new RowFault('its “answer” has no “#### ” before the number');
    return {
      contexts: [`Question: ${textOf(row, 'question')}\nAnswer:`],
      continuations: [` ${answer}`],
      ...{ choices: [], target: null },
      written: {
        until: ['Question:', '</s>', '<|im_end|>'],
        maxTokens: mostTokens(row, MOST_TOKENS.exact),
        chat: false,
        values: (text) => exactValues(text, answer),
      },
    };
  },
};

/** A prompt, and checks of the answer by name. */
export const instructions: Written = {
  outputType: 'generate_until',
  metrics: [
    ...['prompt_level_strict_acc', 'inst_level_strict_acc'],
    ...['prompt_level_loose_acc', 'inst_level_loose_acc'],
  ],
  columns: ['prompt', 'instruction_id_list', 'kwargs'],
  ask(row): Question {
    const checks = checksOf(row);
    return {
      contexts: [textOf(row, 'prompt')],
      continuations: [''],
      ...{ choices: [], target: null },
      written: {
        until: [],
        maxTokens: mostTokens(row, MOST_TOKENS.instructions),
        chat: true,
        checks: checks.length,
        values: (text) => followed(checks, text),
      },
    };
  },
};

/** The first number behind `####`, and the last number anywhere. */
function exactValues(text: string, answer: string): Record<string, number> {
  const [, strict] = /#### (-?[0-9.,]+)/.exec(text) ?? [];
  const flexible = text.match(/-?[$0-9.,]{2,}|-?[0-9]+/g)?.at(-1);
  const equal = (found = '[invalid]') => Number(compared(strip(found)) === compared(answer));
  return { 'exact_match,strict-match': equal(strict), 'exact_match,flexible-extract': equal(flexible) };
}

/** What of a number or an answer is compared: `regexes_to_ignore` of gsm8k.yaml, in their order, then small letters. */
function compared(text: string): string {
  return text
    .replace(/,/g, '')
    .replace(/\$/g, '')
    .replace(/.*#### /gs, '')
    .replace(/\.(?=\n?$)/, '')
    .toLowerCase();
}

/** What is written before the first of the texts that end an answer. */
export function cutAnswer(text: string, until: readonly string[]): string {
  return until.reduce((left, end) => left.split(end, 1)[0]!, text);
}
