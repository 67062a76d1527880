/** Options of a tool as plain data: its flags, ranges, defaults and help of the command come from them, and what the studio starts with and refuses. */

interface Described {
  /** As it is typed, without `--`. Absent: the option's own name with hyphens. */
  flag?: string;
  /** Placeholder for the value in the usage, where there is no default. */
  argument?: string;
  /** Help in one sentence, shown by `<verb> --help` and beside the field in the studio. */
  help: string;
  /** Label of its field in the studio. Absent: its name in words. */
  label?: string;
  /** The only place where it exists, unless in both. */
  only?: 'command' | 'studio';
  /** Options of one name exclude each other. */
  either?: string;
  /** It, or one of those that exclude each other, has to be given. */
  needed?: true;
  /** The values of other options with which it means something; the studio shows it with them only. */
  when?: Readonly<Record<string, readonly unknown[]>>;
  /** Initial value in the studio, where that is not the default. */
  start?: unknown;
}

export interface NumberOption extends Described {
  kind: 'number' | 'integer';
  /** Absent: there is none unless somebody gives one. */
  default?: number;
  /** Bounds that are values themselves. */
  min?: number;
  max?: number;
  /** Typed with a unit, too (`20MB`, `2m`); bytes are megabytes in the studio. */
  unit?: 'bytes' | 'seconds';
  /** Bounds that are not. */
  above?: number;
  below?: number;
}

interface BooleanOption extends Described {
  kind: 'boolean';
  /** Where true, the flag sets it to false. */
  default: boolean;
}

export interface ChoiceOption extends Described {
  kind: 'choice';
  values: readonly string[];
  /** The values as they are typed, where that differs. */
  typed?: readonly string[];
  /** The values as the studio has them. */
  labels?: readonly string[];
  default?: string;
}

interface TextOption extends Described {
  kind: 'text';
}

/** Several texts, given again and again. */
interface ListOption extends Described {
  kind: 'list';
  /** None is split at its commas: paths of files. */
  whole?: true;
}

export type Option = NumberOption | BooleanOption | ChoiceOption | TextOption | ListOption;
export type Options = Readonly<Record<string, Option>>;

type OptionValue<O> = O extends { kind: 'number' | 'integer' }
  ? number
  : O extends { kind: 'boolean' }
    ? boolean
    : O extends { kind: 'choice'; values: readonly (infer V)[] }
      ? V
      : O extends { kind: 'list' }
        ? string[]
        : string;

type Defaulted<S> = {
  [K in keyof S]: S[K] extends { default: unknown } | { kind: 'list' } ? K : never;
}[keyof S];

/** Values of options that are not given; those without a default are absent. */
type OptionDefaults<S> = { -readonly [K in Defaulted<S>]: OptionValue<S[K]> };

/** Chosen values, and the defaults of the rest. */
export type OptionValues<S> = OptionDefaults<S> & {
  -readonly [K in Exclude<keyof S, Defaulted<S>>]?: OptionValue<S[K]>;
};

export function defaultsOf<const S extends Options>(options: S): OptionDefaults<S> {
  const found = Object.entries(options).flatMap(([name, option]) => {
    const value = option.kind === 'list' ? [] : 'default' in option ? option.default : undefined;
    return value === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries(found) as OptionDefaults<S>;
}

/** Whether an option means something with these values of the others. */
export function isMeant({ when = {} }: Option, values: Readonly<Record<string, unknown>>): boolean {
  return Object.entries(when).every(([other, wanted]) => wanted.includes(values[other]));
}

/** The values without what nobody gave, and without what was given and means nothing beside the others. */
export function meantValues<const S extends Options>(options: S, values: OptionValues<S>): OptionValues<S> {
  const all = values as Readonly<Record<string, unknown>>;
  const meant = Object.entries(options).filter(
    ([name, option]) => all[name] !== undefined && ('default' in option || isMeant(option, all)),
  );
  return Object.fromEntries(meant.map(([name]) => [name, all[name]])) as OptionValues<S>;
}

export function isInRange({ kind, min, max, above, below }: NumberOption, value: number): boolean {
  return (
    (kind === 'integer' ? Number.isSafeInteger(value) : Number.isFinite(value)) &&
    value >= (min ?? Number.NEGATIVE_INFINITY) &&
    value <= (max ?? Number.POSITIVE_INFINITY) &&
    value > (above ?? Number.NEGATIVE_INFINITY) &&
    value < (below ?? Number.POSITIVE_INFINITY)
  );
}

/** `a whole number from 2`, `a number above 0 and at most 1` */
export function rangeWords({
  kind,
  min,
  max,
  above,
  below,
}: Pick<NumberOption, 'kind' | 'min' | 'max' | 'above' | 'below'>): string {
  const least = min === undefined ? (above === undefined ? '' : `above ${above}`) : `from ${min}`;
  const most = max === undefined ? (below === undefined ? '' : `below ${below}`) : `at most ${max}`;
  const bounds = [least, most].filter((words) => words !== '').join(' and ');
  return `${kind === 'integer' ? 'a whole number' : 'a number'}${bounds && ` ${bounds}`}`;
}

// Options in a form of the studio.

/** Why a form cannot be meant, in words; null where it can. */
export function optionsProblem<S extends Options>(options: S, values: OptionValues<S>): string | null {
  for (const [name, option] of shownOptions(options, values)) {
    const value = (values as Readonly<Record<string, unknown>>)[name];
    const isEmpty = value === undefined || value === '' || (Array.isArray(value) && value.length === 0);
    if (option.needed && option.either === undefined && isEmpty) {
      return `${capital(labelOf(name, option))}: needed.`;
    }
    if ((option.kind === 'number' || option.kind === 'integer') && typeof value === 'number') {
      if (isInRange(option, value)) continue;
      // its label says megabytes
      const shown = option.unit === 'bytes' ? { kind: 'number' as const, min: option.min! / 1e6 } : option;
      return `${capital(labelOf(name, option))}: ${rangeWords(shown)}.`;
    }
  }
  return null;
}

/** Options that the studio shows, with these values of the others. */
export function shownOptions<S extends Options>(
  options: S,
  values: OptionValues<S>,
): [keyof S & string, Option][] {
  return Object.entries(options).filter(([, option]) => option.only === undefined && isMeant(option, values));
}

/** `maxRank` → `max rank` */
export function labelOf(name: string, { label }: Option): string {
  return label ?? name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

export const capital = (words: string) => words[0]!.toUpperCase() + words.slice(1);
