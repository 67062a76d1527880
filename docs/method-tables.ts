/** The tables of docs/methods.md, written from the method files (`npm run docs:methods`). */
import { counted } from '../src/formats/quantity';
import type { DeltaPreset, MergeMethod, ParameterSpec } from '../src/merge/method';
import type { MethodContract } from '../src/merge/methods/oracle';
import type { ResolvedParameters } from '../src/merge/plan/plan';

const contracts = import.meta.glob<MethodContract>('../src/merge/methods/*.oracle.ts', {
  eager: true,
  import: 'contract',
});

/** Everything between the markers of docs/methods.md, as Markdown. */
function methodTables(methods: readonly MergeMethod[]): string {
  const shared = sharedRows(methods);
  return [
    overview(methods),
    presets(methods),
    `## Shared parameters\n\nA method's section names those it takes, less what needs another of them, and lists its own (values; default).\n† Amalgam’s own: mergekit does not know it.\n\n${table(COLUMNS, [...shared.values()])}`,
    ...methods.map((method) => section(method, shared)),
  ].join('\n\n');
}

const COLUMNS = ['parameter', 'values', 'default', 'meaning'];

/** Rows that several methods have word for word, by parameter; the commonest row of each. */
function sharedRows(methods: readonly MergeMethod[]): Map<string, string[]> {
  const counts = new Map<string, { row: string[]; count: number }>();
  for (const row of methods.flatMap(parameterRows)) {
    const entry = counts.get(row.join()) ?? { row, count: 0 };
    counts.set(row.join(), { row, count: entry.count + 1 });
  }
  const shared = new Map<string, string[]>();
  for (const { row, count } of [...counts.values()].sort((a, b) => b.count - a.count)) {
    if (count >= 2 && !shared.has(row[0]!)) shared.set(row[0]!, row);
  }
  return shared;
}

function parameterRows({ parameters, modelParameters }: MergeMethod): string[][] {
  return [
    ...Object.entries(modelParameters).map(([name, spec]) => parameterRow(name, spec, 'each model')),
    ...Object.entries(parameters).map(([name, spec]) => parameterRow(name, spec)),
  ];
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((c) => c.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)].join('\n');
}

function overview(methods: readonly MergeMethod[]): string {
  const rows = methods.map((m) => [
    `[\`${m.id}\`](#${m.id})`,
    m.summary,
    [m.compute.kind, ...odd(m)].join(', '),
  ]);
  return `## All methods\n\nWith a base, 1–32 models, and NaN that stays in its element, unless the kind says otherwise.\n\n${table(
    ['method', 'what it does', 'kind'],
    rows,
  )}`;
}

/** What is not as with most. */
function odd({ id, base, models: { min, max } }: MergeMethod): string[] {
  const { spread } = contracts[`../src/merge/methods/${id}.oracle.ts`]!;
  return [
    ...(base === 'required' ? [] : [base === 'none' ? 'no base' : 'base optional']),
    ...(min === 1 && max === 32 ? [] : [min === max ? counted(min, 'model') : `${min}–${max} models`]),
    ...(spread === 'element' ? [] : [`NaN: ${spread}`]),
  ];
}

/** Presets of the delta pipeline with default parameters, one row for named semantics that differ. */
function presets(methods: readonly MergeMethod[]): string {
  const rows = methods.flatMap(({ id, compute, parameters }) => {
    if (compute.kind !== 'delta') return [];
    const { semantics } = parameters;
    const names = semantics?.kind === 'choice' ? semantics.choices.map((c) => c.value) : [undefined];
    const byWords = new Map<string, { words: string[]; semantics: string[] }>();
    for (const name of names) {
      const preset = compute.preset({ ...defaultsOf(parameters), ...(name ? { semantics: name } : {}) });
      const words = [selects(preset), rescales(preset), elects(preset), divides(preset)];
      const entry = byWords.get(words.join()) ?? { words, semantics: [] };
      byWords.set(words.join(), { words, semantics: [...entry.semantics, ...(name ? [name] : [])] });
    }
    return [...byWords.values()].map(({ words, semantics: same }) => [
      `\`${id}\`${byWords.size > 1 ? ` · ${same.join(', ')}` : ''}`,
      ...words,
    ]);
  });
  return `## Presets of the delta pipeline\n\nWith default parameters.\n\n${table(
    ['method · semantics', 'keeps', 'rescales', 'elects a sign by', 'divides by'],
    rows,
  )}`;
}

/** The defaults of parameters that have one. */
function defaultsOf(specs: Readonly<Record<string, ParameterSpec>>): ResolvedParameters {
  return Object.fromEntries(Object.entries(specs).map(([name, spec]) => [name, spec.default ?? 0]));
}

function selects({ select, scope }: DeltaPreset): string {
  return {
    all: 'everything',
    'top-k': scope === 'model' ? 'largest, one threshold per model' : 'largest ⌊ρn⌋ of the tensor',
    random: 'each with probability ρ',
    rank: 'each with probability ρ ± ε by rank in its row',
    band: '⌊ρn⌋ below the ⌊γn⌋ largest',
    variance: 'where the models differ most',
    fusion: 'importance above the fence',
    own: 'largest ⌊ρn⌋ by a score of its own',
    prepared: 'what importance chose',
  }[select];
}

function rescales({ rescale }: DeltaPreset): string {
  return { none: '–', '1/density': '1/ρ', '1/probability': '1/own probability', l1: '‖τ‖₁ matched' }[rescale];
}

function elects({ consensus, ballots, zeroVote }: DeltaPreset): string {
  if (consensus === 'none') return '–';
  const what = consensus === 'count' ? 'signs' : ballots === 'unweighted' ? 'changes' : 'weighted changes';
  return `${what}; 0 elects ${zeroVote === 'majority' ? 'the majority sign of the model' : '+'}`;
}

function divides({ consensus, normalize, divisor, weights }: DeltaPreset): string {
  if (!normalize) return '–';
  return divisor === 'count'
    ? `number of ${consensus === 'none' ? 'keeping' : 'agreeing'} models`
    : weights === 'energy'
      ? 'Σ energies'
      : 'Σ weights';
}

function section(method: MergeMethod, shared: ReadonlyMap<string, string[]>): string {
  const { id, formula, reference } = method;
  const rows = parameterRows(method);
  // what the table says of another parameter is no concern of a method without it
  const known = rows.filter((row) => shared.get(row[0]!)?.join().startsWith(row.join()));
  const own = rows.filter((row) => !known.includes(row));
  const needing = needsAnother(method);
  const same = known.filter(([name]) => !needing.has(nameOf(name!)));
  return [
    `### ${id}`,
    `    ${formula}`,
    [
      `[${reference.label}](${reference.url})`,
      ...(same.length > 0 ? [same.map(([name]) => name!.replace(' †', '')).join(', ')] : []),
      ...(rows.length === 0 ? ['no parameters'] : []),
    ].join(' · '),
    ...(own.length > 0 ? [own.map(listed).join('\n')] : []),
  ].join('\n\n');
}

/** Names of the parameters that have an effect with another alone: the table of all says with which. */
function needsAnother({ parameters, modelParameters }: MergeMethod): ReadonlySet<string> {
  const all = Object.entries({ ...parameters, ...modelParameters });
  return new Set(all.flatMap(([name, { when }]) => (when ? [name] : [])));
}

/** `density` of its cell. */
const nameOf = (cell: string) => cell.replace(/^`([^`]+)`.*$/, '$1');

/** A parameter of one method as an item of a list. */
const listed = ([name, values, byDefault, meaning]: string[]) =>
  `- ${name} (${values}; ${byDefault}): ${meaning}`;

function parameterRow(name: string, spec: ParameterSpec, where?: string): string[] {
  const byDefault = spec.default === undefined ? 'required' : `${spec.default}`;
  const notes = [
    spec.inert ? 'Accepted without effect.' : '',
    spec.when ? `With ${spec.when.map((w) => `${w.parameter}: ${w.is}`).join(' or ')} only.` : '',
  ];
  return [
    `\`${name}\`${spec.extension ? ' †' : ''}`,
    `${where ? `${where}: ` : ''}${valuesOf(spec)}`,
    byDefault,
    [spec.help, ...notes].filter(Boolean).join(' '),
  ];
}

function valuesOf(spec: ParameterSpec): string {
  switch (spec.kind) {
    case 'number':
      return `${spec.integer ? 'whole number ' : ''}${spec.min} … ${spec.max}${spec.auto ? ', auto' : ''}`;
    case 'text':
      return spec.values;
    case 'boolean':
      return 'true, false';
    case 'choice': {
      const yes = spec.booleans ? `; true = ${spec.booleans.true}, false = ${spec.booleans.false}` : '';
      return `${spec.choices.map((c) => c.value).join(', ')}${yes}`;
    }
  }
}

const BEGIN = '<!-- written by `npm run docs:methods`: begin -->';
const END = '<!-- written by `npm run docs:methods`: end -->';

/** docs/methods.md with its tables written anew. @throws Error where the markers are missing */
export function withTables(page: string, methods: readonly MergeMethod[]): string {
  const begin = page.indexOf(BEGIN);
  const end = page.indexOf(END);
  if (begin < 0 || end < begin) throw new Error('docs/methods.md has lost its markers');
  return `${page.slice(0, begin + BEGIN.length)}\n\n${methodTables(methods)}\n\n${page.slice(end)}`;
}
