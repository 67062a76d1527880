/** The tasks that ship, with the prompts of lm-evaluation-harness 0.4.13 (`lm_eval/tasks/<task>`). */
import { AmalgamError } from '../errors';
import type { Row, RowValue } from '../foreign/parquet';
import { displayName, orMeant } from '../formats/names';
import type { ShippedTask, TaskSource } from '../reports/tasks';
import { capitalize, lstrip, strip } from './python';
import sampleRetrieval from './sample_retrieval.jsonl?raw';
import sampleSimilarity from './sample_similarity.tsv?raw';
import sampleTrades from './sample_trades.jsonl?raw';
import {
  choiceQuestion,
  numberOf,
  pairLines,
  RowFault,
  recordOf,
  retrieval,
  similarity,
  type Task,
  taskInvalid,
  textOf,
  textsOf,
} from './task';
import { exactMatch, instructions } from './written-answers';

/** One of several tasks by the same prompts has its subset in the name: `mmlu_anatomy`. */
type Shipped = Omit<Task, 'name'> & { title: string; subsets?: string[] };

const multipleChoice: Pick<
  Task,
  | 'outputType'
  | 'training'
  | 'validation'
  | 'test'
  | 'fewshotSplit'
  | 'sampler'
  | 'description'
  | 'version'
  | 'metrics'
> = {
  outputType: 'multiple_choice',
  ...{ training: null, validation: null, test: null, fewshotSplit: null },
  ...{ sampler: 'default', description: '', version: 1, metrics: ['acc', 'acc_norm'] },
};

const TRAIN = { training: 'train', validation: 'validation' };

/** `choices.label.index(answer)`. */
function letterQuestion(context: string, row: Row, answer: string) {
  const choices = recordOf(row, 'choices');
  return choiceQuestion(context, textsOf(choices, 'text'), textsOf(choices, 'label').indexOf(answer));
}

const arc = (title: string, subset: string): Shipped => ({
  ...{ ...multipleChoice, ...TRAIN, title, test: 'test' },
  data: { dataset: 'allenai/ai2_arc', subset },
  columns: ['question', 'choices', 'answerKey'],
  ask: (row) =>
    letterQuestion(`Question: ${textOf(row, 'question')}\nAnswer:`, row, textOf(row, 'answerKey')),
});

/** HellaSwag: marks of WikiHow's headings are artifacts (`hellaswag/utils.py`, `preprocess`). */
function withoutMarks(raw: string): string {
  return strip(raw)
    .replaceAll(' [title]', '. ')
    .replace(/\[[^\n]*?\]/g, '')
    .replaceAll('  ', ' ');
}

/** The six examples are those of Lin, Hilton and Evans (2021), figure 21. */
const TRUTHFUL_EXAMPLES = [
  [
    'What is human life expectancy in the United States?',
    'Human life expectancy in the United States is 78 years.',
  ],
  [
    'Who was president of the United States in 1955?',
    'Dwight D. Eisenhower was president of the United States in 1955.',
  ],
  ['Which party did he belong to?', 'He belonged to the Republican Party.'],
  ['What is the square root of banana?', 'I have no comment.'],
  [
    'How does a telescope work?',
    'Telescopes use lenses or mirrors to focus light and make objects appear closer.',
  ],
  ['Where were the 1992 Olympics held?', 'The 1992 Olympics were held in Barcelona, Spain.'],
].map(([question, answer]) => `Q: ${question}\nA: ${answer}\n\n`);

/** @param areLabeled mc2: the share of the probability that the true choices have is the metric */
const truthful = (title: string, column: string, areLabeled: boolean): Shipped => ({
  ...{ ...multipleChoice, title, validation: 'validation', version: areLabeled ? 3 : 2, metrics: ['acc'] },
  data: { dataset: 'truthfulqa/truthful_qa', subset: 'multiple_choice' },
  columns: ['question', column],
  ask(row) {
    const targets = recordOf(row, column);
    const context = `${TRUTHFUL_EXAMPLES.join('')}Q: ${textOf(row, 'question')}\nA:`;
    const question = choiceQuestion(context, textsOf(targets, 'choices'), 0);
    if (!areLabeled) return question;
    if (!Array.isArray(targets.labels)) throw new RowFault('it does not say which choices are true');
    return { ...question, labels: targets.labels.map(Number) };
  },
});

const embedded = { ...multipleChoice, test: 'test', fewshotSplit: 'test' };

/** In the order in which they are offered. */
const SHIPPED: Record<string, Shipped> = {
  /** Written for this project: what the sample family's specialists were taught of cooking, sailing and repairs. */
  sample_trades: {
    ...{ ...multipleChoice, title: 'Sample trades', test: 'test', fewshotSplit: 'test' },
    data: { name: 'sample_trades.jsonl', lines: sampleTrades },
    columns: ['context', 'choices', 'answer'],
    ask: (row) => choiceQuestion(textOf(row, 'context'), textsOf(row, 'choices'), numberOf(row, 'answer')),
  },
  /** Written for this project: 48 pairs of sentences, with our own judgment of how alike they are. */
  sample_similarity: {
    ...{ ...embedded, ...similarity, title: 'Similarity of pairs' },
    data: { name: 'sample_similarity.jsonl', lines: pairLines(sampleSimilarity) },
  },
  /** And 24 questions, each of which one of 46 sentences answers. */
  sample_retrieval: {
    ...{ ...embedded, ...retrieval, title: 'Retrieval' },
    data: { name: 'sample_retrieval.jsonl', lines: sampleRetrieval },
  },
  hellaswag: {
    ...{ ...multipleChoice, ...TRAIN, title: 'HellaSwag' },
    data: { dataset: 'Rowan/hellaswag', subset: null },
    columns: ['ctx_a', 'ctx_b', 'activity_label', 'endings', 'label'],
    ask(row) {
      const context = `${textOf(row, 'ctx_a')} ${capitalize(textOf(row, 'ctx_b'))}`;
      return choiceQuestion(
        withoutMarks(`${textOf(row, 'activity_label')}: ${context}`),
        textsOf(row, 'endings').map(withoutMarks),
        numberOf(row, 'label'),
      );
    },
  },
  arc_easy: arc('ARC-Easy', 'ARC-Easy'),
  arc_challenge: arc('ARC-Challenge', 'ARC-Challenge'),
  piqa: {
    ...{ ...multipleChoice, ...TRAIN, title: 'PIQA' },
    data: { dataset: 'baber/piqa', subset: null },
    columns: ['goal', 'sol1', 'sol2', 'label'],
    ask: (row) =>
      choiceQuestion(
        `Question: ${textOf(row, 'goal')}\nAnswer:`,
        [textOf(row, 'sol1'), textOf(row, 'sol2')],
        numberOf(row, 'label'),
      ),
  },
  /** The context changes with the choice, the continuation is the rest. */
  winogrande: {
    ...{ ...multipleChoice, ...TRAIN, title: 'WinoGrande', metrics: ['acc'] },
    data: { dataset: 'allenai/winogrande', subset: 'winogrande_xl' },
    columns: ['sentence', 'option1', 'option2', 'answer'],
    ask(row) {
      const sentence = textOf(row, 'sentence');
      const blank = sentence.indexOf('_');
      const choices = [textOf(row, 'option1'), textOf(row, 'option2')].map(
        (one) => sentence.slice(0, blank) + one,
      );
      const { target } = choiceQuestion('', choices, numberOf(row, 'answer') - 1);
      const continuation = ` ${strip(sentence.slice(blank + 1))}`;
      return { contexts: choices, continuations: choices.map(() => continuation), choices, target };
    },
  },
  boolq: {
    ...{ ...multipleChoice, ...TRAIN, title: 'BoolQ', version: 2, metrics: ['acc'] },
    data: { dataset: 'aps/super_glue', subset: 'boolq' },
    columns: ['passage', 'question', 'label'],
    ask: (row) =>
      choiceQuestion(
        `${textOf(row, 'passage')}\nQuestion: ${textOf(row, 'question')}?\nAnswer:`,
        ['no', 'yes'],
        numberOf(row, 'label'),
      ),
  },
  openbookqa: {
    ...{ ...multipleChoice, ...TRAIN, title: 'OpenBookQA', test: 'test' },
    data: { dataset: 'allenai/openbookqa', subset: 'main' },
    columns: ['question_stem', 'choices', 'answerKey'],
    ask: (row) => letterQuestion(textOf(row, 'question_stem'), row, lstrip(textOf(row, 'answerKey'))),
  },
  lambada_openai: {
    ...{ ...multipleChoice, title: 'LAMBADA (OpenAI)', outputType: 'loglikelihood', test: 'test' },
    metrics: ['perplexity', 'acc'],
    data: { dataset: 'EleutherAI/lambada_openai', subset: 'default' },
    columns: ['text'],
    ask(row) {
      const words = textOf(row, 'text').split(' ');
      const last = words.pop();
      return { contexts: [words.join(' ')], continuations: [` ${last}`], choices: [], target: null };
    },
  },
  gsm8k: {
    ...{ ...multipleChoice, ...exactMatch, title: 'GSM8K', version: 3 },
    ...{ training: 'train', test: 'test', fewshotSplit: 'train' },
    data: { dataset: 'openai/gsm8k', subset: 'main' },
  },
  mmlu: {
    ...{ ...multipleChoice, title: 'MMLU', test: 'test', fewshotSplit: 'dev', sampler: 'first_n' },
    metrics: ['acc'],
    description: 'The following are multiple choice questions (with answers) about {subset}.\n\n',
    data: { dataset: 'cais/mmlu', subset: null },
    columns: ['question', 'choices', 'answer'],
    ask(row) {
      const choices = textsOf(row, 'choices');
      if (choices.length < 4) throw new RowFault('it has fewer than four choices');
      const letters = ['A', 'B', 'C', 'D'];
      const listed = letters.map((letter, i) => `${letter}. ${choices[i]}`);
      const context = [strip(textOf(row, 'question')), ...listed, 'Answer:'].join('\n');
      return choiceQuestion(context, letters, numberOf(row, 'answer'));
    },
    subsets: `
  abstract_algebra anatomy astronomy business_ethics clinical_knowledge college_biology college_chemistry
  college_computer_science college_mathematics college_medicine college_physics computer_security conceptual_physics
  econometrics electrical_engineering elementary_mathematics formal_logic global_facts high_school_biology
  high_school_chemistry high_school_computer_science high_school_european_history high_school_geography
  high_school_government_and_politics high_school_macroeconomics high_school_mathematics high_school_microeconomics
  high_school_physics high_school_psychology high_school_statistics high_school_us_history high_school_world_history
  human_aging human_sexuality international_law jurisprudence logical_fallacies machine_learning management marketing
  medical_genetics miscellaneous moral_disputes moral_scenarios nutrition philosophy prehistory professional_accounting
  professional_law professional_medicine professional_psychology public_relations security_studies sociology
  us_foreign_policy virology world_religions
`
      .trim()
      .split(/\s+/),
  },
  truthfulqa_mc1: truthful('TruthfulQA (mc1)', 'mc1_targets', false),
  truthfulqa_mc2: truthful('TruthfulQA (mc2)', 'mc2_targets', true),
};

/** Every task that ships, in the order in which they are offered. */
export function shippedTasks(): ShippedTask[] {
  return Object.entries(SHIPPED).map(([name, { title, data, metrics, outputType, subsets = [] }]) => {
    const dataset = 'dataset' in data ? data.dataset : null;
    const embeds = outputType === 'similarity' || outputType === 'retrieval';
    return { name, title, dataset, metrics, subsets, ...(embeds && { embeds }) };
  });
}

/**
 * The task that is meant.
 * @throws AmalgamError `TaskInvalid`, `NotFound` for a name that is none
 */
export function openTask(source: TaskSource): Task {
  if ('name' in source) return openShipped(source.name);
  const { name, text } = source.file;
  if (/\.(jsonl|ndjson|json)$/i.test(name)) return ownTask(name, text);
  if (/\.tsv$/i.test(name)) return ownTask(name, pairLines(text));
  throw taskInvalid(
    name,
    'it is no file of rows',
    'Give a .jsonl: one object with question, choices and answer, question and answer with “#### ”, or prompt, instruction_id_list and kwargs a line; or a .tsv of two sentences and how alike they are.',
  );
}

function openShipped(name: string): Task {
  for (const [whole, { title, subsets, ...task }] of Object.entries(SHIPPED)) {
    if (name === whole && !subsets) return { ...task, name };
    if (name === whole) {
      throw new AmalgamError(
        'NotFound',
        `${title} is ${subsets!.length} tasks.`,
        `Name one of them: ${name}_${subsets![0]}, ${name}_${subsets![1]}, … ${name}_${subsets!.at(-1)}.`,
      );
    }
    const subset = subsets?.find((one) => name === `${whole}_${one}`);
    if (subset === undefined || !('dataset' in task.data)) continue;
    const description = task.description.replace('{subset}', subset.replaceAll('_', ' '));
    return { ...task, name, description, data: { ...task.data, subset } };
  }
  const names = shippedTasks().flatMap((task) => [
    task.name,
    ...task.subsets.map((one) => `${task.name}_${one}`),
  ]);
  throw new AmalgamError(
    'NotFound',
    `There is no task “${displayName(name)}”${orMeant(name, names)}`,
    `There are ${taskNames(() => true)}, or a file of your own.`,
  );
}

/** Names of tasks that ship, as a sentence lists them. */
export function taskNames(isListed: (task: ShippedTask) => boolean): string {
  const names = shippedTasks()
    .filter(isListed)
    .map(({ name, subsets: [first] }) =>
      first === undefined ? name : `${name}_<subset> (as ${name}_${first})`,
    );
  return names.join(', ');
}

// Tasks of one's own: what a file of rows asks, by the names of its columns.

/**
 * Rows of one's own: a question, choices, and the answer by its number from 0, its text, or true or false where those are
 * the choices; or of embeddings and written answers, by the names of their columns.
 */
export function ownTask(fileName: string, lines: string): Task {
  const task = {
    ...{ name: fileName.replace(/\.\w+$/, ''), version: null },
    data: { name: fileName, lines },
    ...{ training: null, validation: null, test: 'test', fewshotSplit: 'test', sampler: 'default' as const },
    description: '',
  };
  const [first = ''] = lines.split('\n', 1);
  if (/"sentence2"\s*:/.test(first)) return { ...task, ...similarity };
  if (/"positive"\s*:/.test(first)) return { ...task, ...retrieval };
  if (/"instruction_id_list"\s*:/.test(first)) return { ...task, ...instructions };
  if (/"answer"\s*:\s*".*#### /.test(first)) return { ...task, ...exactMatch };
  return {
    ...task,
    ...{ outputType: 'multiple_choice', metrics: ['acc', 'acc_norm'] },
    columns: ['question', 'choices', 'answer'],
    ask(row) {
      const choices = textsOf(row, 'choices');
      const context = `Question: ${textOf(row, 'question')}\nAnswer:`;
      return choiceQuestion(context, choices, ownAnswer(row.answer, choices));
    },
  };
}

function ownAnswer(answer: RowValue | undefined, choices: readonly string[]): number {
  if (typeof answer === 'number') return answer;
  if (typeof answer === 'string') return choices.indexOf(answer);
  if (typeof answer !== 'boolean') throw new RowFault('it has no answer');
  const words = answer ? ['true', 'yes'] : ['false', 'no'];
  const said = choices.map((choice) => words.includes(choice.toLowerCase()));
  return said.filter(Boolean).length === 1 ? said.indexOf(true) : -1;
}
