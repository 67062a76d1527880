/** Task files: the part of lm-evaluation-harness's YAML that is data. */
import { parseDocument, type ScalarTag } from 'yaml';
import { AmalgamError } from '../errors';
import { displayName } from '../formats/names';
import { FUNCTIONS } from './functions';

/** A field that is computed of a row: a template, a value, or a function of ours by its name. */
export type TaskField = { template: string } | { value: number | string[] } | { call: string };

export interface Task {
  name: string;
  version: number | null;
  outputType: 'multiple_choice' | 'loglikelihood' | 'loglikelihood_rolling';
  /** On the Hub, or the name of a file of rows beside the task's. */
  data: { dataset: string; subset: string | null } | { file: string };
  training: string | null;
  validation: string | null;
  test: string | null;
  /** Where examples are from; null: training rows, else those of validation, else those of test. */
  fewshotSplit: string | null;
  sampler: 'default' | 'first_n';
  processDocs: string | null;
  docToText: TaskField;
  docToTarget: TaskField;
  docToChoice: TaskField | null;
  processResults: string | null;
  description: string;
  targetDelimiter: string;
  fewshotDelimiter: string;
  fewshot: number | null;
  metrics: string[];
}

/** Metrics by output type. */
const METRICS: Record<Task['outputType'], readonly string[]> = {
  multiple_choice: ['acc', 'acc_norm', 'acc_bytes'],
  loglikelihood: ['perplexity', 'acc'],
  loglikelihood_rolling: ['word_perplexity', 'byte_perplexity', 'bits_per_byte'],
};

/** Fields that say something about a task and change nothing of its scoring. */
const ABOUT = ['task_alias', 'tag', 'group', 'should_decontaminate', 'doc_to_decontamination_query'];
const KNOWN = new Set([
  ...ABOUT,
  ...['task', 'dataset_path', 'dataset_name', 'dataset_kwargs', 'output_type', 'metric_list', 'metadata'],
  ...['training_split', 'validation_split', 'test_split', 'fewshot_split', 'fewshot_config', 'num_fewshot'],
  ...['process_docs', 'process_results', 'doc_to_text', 'doc_to_target', 'doc_to_choice', 'description'],
  ...['target_delimiter', 'fewshot_delimiter', 'repeats'],
]);

/** A function of the harness's tasks, which is Python there and one of {@link FUNCTIONS} here. */
const functionTag: ScalarTag = {
  tag: '!function',
  resolve: (name) => ({ call: name }),
};

/** Longest task file: the parser compares every pair of keys. Those of the harness have a tenth of it. */
const MAX_TASK_LENGTH = 100_000;

/** A YAML text as plain data. @throws AmalgamError `TaskInvalid` */
export function parseYaml(text: string, file: string): Record<string, unknown> {
  if (text.length > MAX_TASK_LENGTH) {
    throw taskInvalid(file, `it is longer than ${MAX_TASK_LENGTH} characters`);
  }
  const fields = plainData(text, file);
  if (typeof fields !== 'object' || fields === null || Array.isArray(fields)) {
    throw taskInvalid(file, 'it is not a mapping');
  }
  return fields as Record<string, unknown>;
}

function plainData(text: string, file: string): unknown {
  try {
    const document = parseDocument(text, {
      ...{ customTags: [functionTag], uniqueKeys: true },
      // what is odd about it is said by what reads it
      logLevel: 'error',
    });
    const [error] = document.errors;
    if (!error) return document.toJS({ maxAliasCount: 0 });
    throw taskInvalid(file, error.message.split('\n')[0] ?? 'it is not YAML');
  } catch (cause) {
    if (cause instanceof AmalgamError) throw cause;
    // aliases, or lists in lists by the thousand
    throw taskInvalid(
      file,
      `it is no plain YAML (${cause instanceof Error ? cause.message : String(cause)})`,
    );
  }
}

/**
 * Reads the fields of a task file.
 * @param file its name, for messages
 * @throws AmalgamError `TaskInvalid` naming the field
 */
export function readTask(fields: Record<string, unknown>, file: string): Task {
  const refuse = (why: string, hint?: string): never => {
    throw taskInvalid(file, why, hint);
  };
  for (const key of Object.keys(fields)) {
    if (!KNOWN.has(key) && fields[key] !== null) {
      refuse(`the field “${displayName(key)}” is not supported here`);
    }
  }
  const text = (key: string, of = fields): string | null => {
    const value = of[key] ?? null;
    if (value !== null && typeof value !== 'string') return refuse(`“${key}” is not a string`);
    return value;
  };
  const choice = (key: string, value: unknown): string =>
    typeof value === 'object' && value !== null
      ? refuse(`a choice in “${key}” is neither a text nor a number`)
      : String(value);
  const computed = (key: string): TaskField | null => {
    const value = fields[key] ?? null;
    if (value === null) return null;
    if (typeof value === 'string') return { template: value };
    if (typeof value === 'number') return { value };
    if (isCall(value)) return { call: knownFunction(value.call) };
    // a list, or the values of a mapping
    if (typeof value === 'object') return { value: Object.values(value).map((one) => choice(key, one)) };
    return refuse(`“${key}” is neither a template nor a list`);
  };
  const knownFunction = (name: string): string =>
    Object.hasOwn(FUNCTIONS, name)
      ? name
      : refuse(
          `it calls the Python function “${displayName(name)}”`,
          'Python is not run here. Write templates instead, or use the task of the same name that ships.',
        );
  const called = (key: string): string | null => {
    const value = fields[key] ?? null;
    if (value === null) return null;
    return isCall(value) ? knownFunction(value.call) : refuse(`“${key}” names no function`);
  };
  const required = (key: string): TaskField =>
    computed(key) ?? refuse(`the field “${key}” is missing`, 'Templates are Jinja, e.g. "{{question}}".');

  const outputType = text('output_type') ?? 'generate_until';
  if (!isOutputType(outputType)) {
    return refuse(
      `its output type is “${displayName(outputType)}”`,
      'Tasks of the types multiple_choice, loglikelihood and loglikelihood_rolling can be scored here.',
    );
  }
  if ((fields.repeats ?? 1) !== 1) refuse('“repeats” is not 1');
  const examples = (fields.fewshot_config ?? {}) as Record<string, unknown>;
  for (const key of Object.keys(examples)) {
    if (key !== 'sampler' && key !== 'split') refuse(`“fewshot_config” has “${displayName(key)}”`);
  }
  const sampler = text('sampler', examples) ?? 'default';
  if (sampler !== 'default' && sampler !== 'first_n')
    refuse(`the sampler “${displayName(sampler)}” is unknown`);
  const fewshot = fields.num_fewshot ?? null;
  if (fewshot !== null && !(Number.isInteger(fewshot) && (fewshot as number) >= 0)) {
    refuse('“num_fewshot” is not a whole number');
  }
  const metadata = (fields.metadata ?? {}) as { version?: unknown };
  const docToChoice = computed('doc_to_choice');
  if (outputType === 'multiple_choice' && docToChoice === null)
    refuse('the field “doc_to_choice” is missing');
  return {
    name: text('task') ?? refuse('the field “task”, its name, is missing'),
    version: typeof metadata.version === 'number' ? metadata.version : null,
    outputType,
    data: dataOf(fields, text, refuse),
    training: text('training_split'),
    validation: text('validation_split'),
    test: text('test_split'),
    fewshotSplit: text('split', examples) ?? text('fewshot_split'),
    sampler: sampler as Task['sampler'],
    processDocs: called('process_docs'),
    docToText: outputType === 'loglikelihood_rolling' ? { template: '' } : required('doc_to_text'),
    docToTarget: required('doc_to_target'),
    docToChoice,
    processResults: called('process_results'),
    description: text('description') ?? '',
    targetDelimiter: text('target_delimiter') ?? ' ',
    fewshotDelimiter: text('fewshot_delimiter') ?? '\n\n',
    fewshot: fewshot as number | null,
    metrics: metricsOf(fields.metric_list, outputType, refuse),
  };
}

function dataOf(
  fields: Record<string, unknown>,
  text: (key: string, of?: Record<string, unknown>) => string | null,
  refuse: (why: string, hint?: string) => never,
): Task['data'] {
  const dataset = text('dataset_path') ?? refuse('the field “dataset_path” is missing');
  if (dataset !== 'json') {
    if (fields.dataset_kwargs !== undefined && fields.dataset_kwargs !== null) {
      const kept = Object.keys(fields.dataset_kwargs as object).filter((key) => key !== 'trust_remote_code');
      if (kept.length > 0) refuse(`“dataset_kwargs” has “${displayName(kept[0]!)}”`);
    }
    return { dataset, subset: text('dataset_name') };
  }
  const { data_files } = (fields.dataset_kwargs ?? {}) as { data_files?: unknown };
  const file = typeof data_files === 'string' ? data_files : Object.values(data_files ?? {})[0];
  if (typeof file !== 'string') {
    return refuse('“dataset_path” is json without a file in “dataset_kwargs: { data_files: … }”');
  }
  return { file: file.split('/').at(-1)! };
}

function metricsOf(
  list: unknown,
  outputType: Task['outputType'],
  refuse: (why: string, hint?: string) => never,
): string[] {
  const known = METRICS[outputType];
  if (list === undefined || list === null) return [...known.slice(0, 2)];
  if (!Array.isArray(list) || list.length === 0) return refuse('“metric_list” is not a list');
  return list.map((entry: unknown) => {
    const metric = (entry as { metric?: unknown } | null)?.metric;
    const name = typeof metric === 'string' ? metric : typeof metric;
    if (known.includes(name)) return name;
    return refuse(
      `the metric “${displayName(name)}” is not computed here`,
      `For ${outputType} there are ${known.join(', ')}.`,
    );
  });
}

/** The error for a task file that cannot be used. */
export function taskInvalid(file: string, why: string, hint?: string, cause?: unknown): AmalgamError {
  return new AmalgamError(
    'TaskInvalid',
    `The task ${displayName(file)} cannot be used: ${why}.`,
    hint ?? 'docs/evaluate.md says what of the harness’s task files is read.',
    { cause },
  );
}

function isCall(value: unknown): value is { call: string } {
  return typeof value === 'object' && value !== null && 'call' in value && typeof value.call === 'string';
}

function isOutputType(name: string): name is Task['outputType'] {
  return Object.hasOwn(METRICS, name);
}
