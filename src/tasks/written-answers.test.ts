import { expect, test } from 'vitest';
import type { Row } from '../foreign/parquet';
import { followed } from './instruction-checks';
import { aggregate, scoreWritten } from './metrics';
import { ownTask } from './shipped';
import { buildItems } from './task-items';
import { cutAnswer } from './written-answers';

const own = (rows: Row[]) => ownTask('own.jsonl', rows.map((row) => JSON.stringify(row)).join('\n'));
const NONE = { limit: null, sampleSeed: null, fewshot: 0, fewshotSeed: 1234 };
const itemsOf = (rows: Row[], options = {}) =>
  buildItems(own(rows), { rows, examples: rows, name: 'rows' }, { ...NONE, ...options });

const sums: Row[] = [
  { question: 'Two and two?', answer: 'Two and two are 4.\n#### 4' },
  { question: 'A thousand and one?', answer: 'It is $1,001.\n#### 1,001' },
];

// expected: `process_results` of lm-evaluation-harness with the filters of gsm8k.yaml, worked out by hand
test.each([
  // [row, answer, strict, flexible]
  [0, ' It is 4.\n#### 4', 1, 1],
  // the first behind ####, and the last anywhere
  [0, '#### 4 or #### 5', 1, 0],
  [0, ' The answer is 4.', 0, 1],
  [0, ' 4 apples', 0, 1],
  [0, '####4', 0, 1],
  [0, '', 0, 0],
  // commas, dollars and a last full stop do not count
  [1, '#### 1001.', 1, 1],
  [1, 'so $1,001', 0, 1],
  [1, '#### -1001', 0, 0],
  // two characters of the first pattern: no number at all
  [0, 'It is 4...', 0, 0],
  [0, 'It is 4 ..', 0, 0],
])('exact match of row %i with “%s”', (row, answer, strict, flexible) => {
  const { values } = scoreWritten(itemsOf(sums)[row]!, answer);
  expect(values).toEqual({ 'exact_match,strict-match': strict, 'exact_match,flexible-extract': flexible });
});

test('a question with solved ones before it, and the answer cut where the next would begin', () => {
  const [item] = itemsOf(sums, { fewshot: 1 });
  expect(item!.requests[0]!.context).toBe(
    'Question: A thousand and one?\nAnswer: It is $1,001.\n#### 1,001\n\nQuestion: Two and two?\nAnswer:',
  );
  expect(cutAnswer(' 4\n#### 4\n\nQuestion: Three', item!.written!.until)).toBe(' 4\n#### 4\n\n');
  expect(itemsOf([{ question: 'x', answer: '#### 1', max_gen_toks: 8 }])[0]!.written!.maxTokens).toBe(8);
});

const check = (name: string, kwargs: Row, answer: string) => {
  const rows = [{ prompt: 'p', instruction_id_list: [name], kwargs: [kwargs] }];
  return followed(
    [(text) => scoreWritten(itemsOf(rows)[0]!, text).values.inst_level_strict_acc === 1],
    answer,
  ).inst_level_strict_acc;
};

// each check, followed and not
test.each<[string, Row, string, string]>([
  ['keywords:existence', { keywords: ['c++', 'Rust'] }, 'rust, then C++', 'C and Rust'],
  ['keywords:frequency', { keyword: 'ha', frequency: 2, relation: 'at least' }, 'haha', 'ha'],
  ['keywords:forbidden_words', { forbidden_words: ['art'] }, 'a start', 'Art is long'],
  ['keywords:letter_frequency', { letter: 'A', let_frequency: 2, let_relation: 'less than' }, 'a', 'aA'],
  ['length_constraints:number_words', { num_words: 3, relation: 'at least' }, 'it’s so', 'so it'],
  ['length_constraints:number_paragraphs', { num_paragraphs: 2 }, 'a\n***\nb', 'a\n***\n\n***\nb'],
  [
    'length_constraints:nth_paragraph_first_word',
    { num_paragraphs: 2, nth_paragraph: 2, first_word: 'Then' },
    'a\n\n"then, b',
    'then\n\nb',
  ],
  ['detectable_content:number_placeholders', { num_placeholders: 2 }, '[a] [b]', '[a\nb] [c]'],
  ['detectable_content:postscript', { postscript_marker: 'P.S.' }, 'x\np. s. y', 'PS y'],
  ['detectable_format:number_bullet_lists', { num_bullets: 2 }, '* a\n - b', '* a\n**b**'],
  ['detectable_format:constrained_response', {}, 'So: My answer is no.', 'No.'],
  ['detectable_format:number_highlighted_sections', { num_highlights: 2 }, '*a* and *b*', '*a* and * *'],
  [
    'detectable_format:multiple_sections',
    { section_spliter: 'Part', num_sections: 2 },
    'Part 1 a\nPart 2',
    'Part 1',
  ],
  ['detectable_format:json_format', {}, '```json\n{"a": 1}\n```', '{a: 1}'],
  ['detectable_format:title', {}, '<<Joy>>\nx', '<< >>'],
  ['combination:two_responses', {}, 'a******b', 'a******a'],
  ['combination:repeat_prompt', { prompt_to_repeat: 'Say it.' }, 'say it. It.', 'It. Say it.'],
  ['startend:end_checker', { end_phrase: 'The end.' }, 'x "the end."', 'The end. Not.'],
  ['startend:quotation', {}, ' "x" ', '"x'],
  ['change_case:english_capital', {}, 'LOUD 1!', 'Loud'],
  ['change_case:english_lowercase', {}, 'calm 1!', '1!'],
  ['punctuation:no_comma', {}, 'a; b', 'a, b'],
])('%s', (name, kwargs, right, wrong) => {
  expect([right, wrong].map((answer) => check(name, kwargs, answer))).toEqual([1, 0]);
});

test('a prompt follows all of its checks or fails; loosely without its first line and asterisks; checks count each for itself', () => {
  const rows: Row[] = [
    {
      prompt: 'a',
      instruction_id_list: ['punctuation:no_comma', 'startend:quotation', 'change_case:english_lowercase'],
      kwargs: [{}, {}, {}],
    },
    { prompt: 'b', instruction_id_list: ['punctuation:no_comma'], kwargs: [{}] },
    { prompt: 'c', instruction_id_list: ['language:response_language'], kwargs: [{ language: 'de' }] },
    { prompt: 'd', instruction_id_list: ['length_constraints:number_words'], kwargs: [{ num_words: 3 }] },
  ];
  const items = itemsOf(rows);
  expect(items.map(({ refused }) => refused)).toEqual([
    undefined,
    undefined,
    'The row is left out: there is no check “language:response_language” here.',
    expect.stringMatching(/its “relation” holds nothing/),
  ]);
  const first = scoreWritten(items[0]!, 'Sure, here:\n"*fine*"');
  expect(first.values).toEqual({
    prompt_level_strict_acc: 0,
    inst_level_strict_acc: 0,
    prompt_level_loose_acc: 1,
    inst_level_loose_acc: 1,
  });
  const second = scoreWritten(items[1]!, 'fine');
  const metrics = aggregate(own(rows).metrics, [first, second]);
  expect(metrics.prompt_level_strict_acc).toEqual({ value: 0.5, stderr: 0.5 });
  // one of four checks
  expect(metrics.inst_level_strict_acc!.value).toBe(0.25);
  expect(scoreWritten(items[1]!, ' \n').values.prompt_level_loose_acc).toBe(0);
});
