/** The tasks that ship: one file each in `shipped/`. */
import { AmalgamError } from '../errors';
import { displayName } from '../formats/names';
import type { ShippedTask, TaskSource } from '../reports/tasks';
import { parseYaml, readTask, type Task, taskInvalid } from './task-file';

const FILES: Record<string, string> = import.meta.glob(['./shipped/*.yaml', './shipped/*.jsonl'], {
  query: '?raw',
  import: 'default',
  eager: true,
});

const TITLES: Record<string, string> = {
  sample_trades: 'Sample trades',
  hellaswag: 'HellaSwag',
  arc_easy: 'ARC-Easy',
  arc_challenge: 'ARC-Challenge',
  piqa: 'PIQA',
  winogrande: 'WinoGrande',
  boolq: 'BoolQ',
  openbookqa: 'OpenBookQA',
  lambada_openai: 'LAMBADA (OpenAI)',
  mmlu: 'MMLU',
  truthfulqa_mc1: 'TruthfulQA (mc1)',
  truthfulqa_mc2: 'TruthfulQA (mc2)',
};

const file = (name: string) => FILES[`./shipped/${name}`];

/** A shipped task, its subset put in. */
function readShipped(name: string): { task: Task; subsets: string[] } {
  const { subsets, ...fields } = parseYaml(file(`${name}.yaml`)!, name);
  return {
    task: readTask(fields, name),
    subsets: typeof subsets === 'string' ? subsets.trim().split(/\s+/) : [],
  };
}

/** Every task that ships, in the order in which they are offered. */
export function shippedTasks(): ShippedTask[] {
  return Object.entries(TITLES).map(([name, title]) => {
    const { task, subsets } = readShipped(name);
    const dataset = 'dataset' in task.data ? task.data.dataset : null;
    return { name, title, dataset, metrics: task.metrics, subsets };
  });
}

/** A task with the rows that came with it. */
export interface OpenedTask {
  task: Task;
  /** Text of a file of rows, one JSON object a line. */
  lines?: { name: string; text: string };
}

/**
 * The task that is meant.
 * @throws AmalgamError `TaskInvalid`, `NotFound` for a name that is none
 */
export function openTask(source: TaskSource): OpenedTask {
  return 'name' in source ? openShipped(source.name) : openOwn(source.files);
}

function openShipped(name: string): OpenedTask {
  if (Object.hasOwn(TITLES, name)) {
    const { task, subsets } = readShipped(name);
    if (subsets.length > 0) {
      throw new AmalgamError(
        'NotFound',
        `${TITLES[name]} is ${subsets.length} tasks.`,
        `Name one of them: ${name}_${subsets[0]}, ${name}_${subsets[1]}, … ${name}_${subsets.at(-1)}.`,
      );
    }
    if (!('file' in task.data)) return { task };
    const lines = { name: task.data.file, text: file(task.data.file)! };
    return { task, lines };
  }
  for (const whole of Object.keys(TITLES)) {
    if (!name.startsWith(`${whole}_`)) continue;
    const subset = name.slice(whole.length + 1);
    const { task, subsets } = readShipped(whole);
    if (!subsets.includes(subset) || !('dataset' in task.data)) continue;
    const description = task.description.replace('{subset}', subset.replaceAll('_', ' '));
    return { task: { ...task, name, description, data: { ...task.data, subset } } };
  }
  throw new AmalgamError(
    'NotFound',
    `There is no task “${displayName(name)}”.`,
    `There are ${Object.keys(TITLES).join(', ')} (mmlu with its subset: mmlu_anatomy), or a file of your own.`,
  );
}

/** Rows of `question`, `choices` and `answer`, as they are asked without a task file. */
const PLAIN_ROWS = `
dataset_path: json
output_type: multiple_choice
test_split: test
doc_to_text: "Question: {{question}}\\nAnswer:"
doc_to_target: answer
doc_to_choice: choices
metric_list: [{ metric: acc }, { metric: acc_norm }]
`;

function openOwn(files: readonly { name: string; text: string }[]): OpenedTask {
  const yaml = files.find(({ name }) => /\.ya?ml$/i.test(name));
  const rows = files.filter((one) => one !== yaml);
  const [first] = files;
  if (!first) throw taskInvalid('of your own', 'there is no file');
  if (rows.length > 1) throw taskInvalid(first.name, 'there are several files of rows');
  const own = rows[0];
  if (!yaml) {
    const name = first.name.replace(/\.\w+$/, '');
    const fields = { ...parseYaml(PLAIN_ROWS, name), task: name };
    const task = readTask({ ...fields, dataset_kwargs: { data_files: first.name } }, first.name);
    return { task, lines: first };
  }
  const task = readTask(parseYaml(yaml.text, yaml.name), yaml.name);
  if ('dataset' in task.data) return { task };
  if (own) return { task, lines: own };
  throw taskInvalid(
    yaml.name,
    `its rows are in ${displayName(task.data.file)}`,
    'Choose that file together with the task’s.',
  );
}
