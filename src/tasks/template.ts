/** The fields of a task computed of a row: Jinja, rendered by `@huggingface/jinja` as the harness has jinja2 do it. */
import type { Environment as JinjaEnvironment } from '@huggingface/jinja';
import type { Row, RowValue } from '../dataset/rows';
import { AmalgamError } from '../errors';
import { boundedInterpreter, boundedRange } from '../formats/bounded-jinja';
import { displayName } from '../formats/names';
import { FUNCTIONS } from './functions';
import type { TaskField } from './task-file';

type Jinja = typeof import('@huggingface/jinja');

/** Computes a field of a row: a text of a template, or the value itself. @throws AmalgamError `TaskInvalid` */
type Compute = (row: Row) => RowValue;

/** Jinja's own names, which are no columns. */
const BUILT_IN = new Set(['true', 'false', 'none', 'True', 'False', 'None', 'range', 'namespace', 'loop']);

export interface CompiledField {
  compute: Compute;
  /** Columns that it reads. */
  columns: string[];
}

/** Templates are compiled once; the renderer is loaded with the first. */
export async function openTemplates(): Promise<{ compile(name: string, field: TaskField): CompiledField }> {
  const jinja = await import('@huggingface/jinja');
  return {
    compile(name, field) {
      if ('value' in field) return { compute: () => field.value, columns: [] };
      if ('call' in field) {
        const { columns, run } = FUNCTIONS[field.call]!;
        return { compute: (row) => computed(name, field.call, run, row), columns: [...columns] };
      }
      return compileTemplate(jinja, name, field.template);
    },
  };
}

/** A function of ours takes columns for what they are in its task; rows of somebody else may have other things there. */
function computed(name: string, call: string, run: Compute, row: Row): RowValue {
  try {
    return run(row);
  } catch (cause) {
    throw new AmalgamError(
      'TaskInvalid',
      `“${name}” cannot be computed: a row is not as ${call} needs it (${cause instanceof Error ? cause.message : String(cause)}).`,
      'Look at the columns of the rows.',
      { cause },
    );
  }
}

function compileTemplate(jinja: Jinja, name: string, template: string): CompiledField {
  const failed = (cause: unknown) =>
    new AmalgamError(
      'TaskInvalid',
      `The template of “${name}” does not render: ${cause instanceof Error ? cause.message : String(cause)}`,
      'Look at the template and at the columns of the rows.',
      { cause },
    );
  let program: ReturnType<Jinja['parse']>;
  // a column's name alone is its value
  if (/^\w+$/.test(template)) {
    return { columns: [template], compute: (row) => row[template] ?? null };
  }
  // the renderer takes one line feed from the end, which jinja2 keeps here
  const kept = template.endsWith('\n') ? `${template}\n` : template;
  try {
    program = jinja.parse(jinja.tokenize(kept));
  } catch (cause) {
    throw failed(cause);
  }
  return {
    columns: [...freeNames(program)],
    compute(row) {
      const environment = new jinja.Environment();
      environment.set('True', true);
      environment.set('False', false);
      environment.set('None', null);
      environment.set('range', boundedRange);
      try {
        for (const [column, value] of Object.entries(row)) {
          // a column that reads like a name of Jinja's is not hidden by it
          withIndex(jinja, environment.set(column, value));
        }
        const interpreter = boundedInterpreter(jinja, environment, JSON.stringify(row).length);
        return interpreter.run(program).value as string;
      } catch (cause) {
        throw failed(cause);
      }
    },
  };
}

type RuntimeValue = ReturnType<JinjaEnvironment['set']>;

/** Gives the lists of a value Python's `list.index`, which the renderer lacks. */
function withIndex(jinja: Jinja, value: RuntimeValue): void {
  if (value.type === 'ObjectValue') {
    for (const inner of (value.value as Map<string, RuntimeValue>).values()) withIndex(jinja, inner);
  }
  if (value.type !== 'ArrayValue') return;
  const list = value.value as RuntimeValue[];
  for (const inner of list) withIndex(jinja, inner);
  const index = new jinja.Environment().set('index', (wanted: unknown) => {
    const at = list.findIndex((item) => item.value === wanted);
    if (at < 0) throw new Error(`“${displayName(String(wanted))}” is not in the list`);
    return at;
  });
  (value.builtins as Map<string, RuntimeValue>).set('index', index);
}

/** Names that a template reads and does not set: columns. */
function freeNames(program: unknown): Set<string> {
  const read = new Set<string>();
  const set = new Set<string>();
  const walk = (node: unknown): void => {
    if (Array.isArray(node)) {
      for (const one of node) walk(one);
      return;
    }
    if (typeof node !== 'object' || node === null) return;
    const { type } = node as { type?: string };
    const fields = node as Record<string, unknown>;
    const name = (of: unknown) => (of as { value?: unknown } | undefined)?.value;
    switch (type) {
      case 'Identifier':
        read.add(String(fields.value));
        return;
      case 'MemberExpression':
        walk(fields.object);
        if (fields.computed) walk(fields.property);
        return;
      case 'FilterExpression': {
        walk(fields.operand);
        const { filter } = fields as { filter: { type: string; args?: unknown } };
        if (filter.type === 'CallExpression') walk(filter.args);
        return;
      }
      case 'TestExpression':
        walk(fields.operand);
        return;
      case 'KeywordArgumentExpression':
        walk(fields.value);
        return;
      case 'Set':
      case 'SetStatement':
        set.add(String(name(fields.assignee)));
        walk(fields.value);
        walk(fields.body);
        return;
      case 'For': {
        const variables = fields.loopvar as { type: string; value?: unknown };
        const names = variables.type === 'TupleLiteral' ? (variables.value as unknown[]) : [variables];
        for (const one of names) set.add(String(name(one)));
        walk(fields.iterable);
        walk(fields.body);
        walk(fields.defaultBlock);
        return;
      }
      default:
        for (const [key, inner] of Object.entries(fields)) if (key !== 'type') walk(inner);
    }
  };
  walk(program);
  return new Set([...read].filter((name) => !set.has(name) && !BUILT_IN.has(name)));
}

/**
 * A list as a template writes it: JSON, or Python's notation of a list of texts.
 * @throws AmalgamError `TaskInvalid`
 */
export function readListText(name: string, text: string): RowValue[] {
  for (const candidate of [text, pythonAsJson(text)]) {
    try {
      const value: unknown = JSON.parse(candidate);
      if (Array.isArray(value)) return value as RowValue[];
    } catch {
      // the other notation, or none
    }
  }
  throw new AmalgamError(
    'TaskInvalid',
    `The template of “${name}” makes no list: “${displayName(text.slice(0, 80))}”.`,
    'It has to give a list of strings, e.g. "{{choices.text}}" or "{{[a, b]}}".',
  );
}

/** Python's texts in single quotes as JSON's in double ones. */
function pythonAsJson(text: string): string {
  return text.replace(/'((?:[^'\\]|\\.)*)'/g, (_, inner: string) =>
    JSON.stringify(inner.replace(/\\(['\\])/g, '$1')),
  );
}
