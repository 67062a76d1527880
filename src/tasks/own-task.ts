/** Tasks of one's own: what a file of rows asks, by the names of its columns. */
import type { RowValue } from '../foreign/parquet';
import { choiceQuestion, RowFault, retrieval, similarity, type Task, textOf, textsOf } from './task';
import { exactMatch, instructions } from './written-answers';

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
