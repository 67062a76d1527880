/**
 * The tools: each reads opened models and reports its findings. Place, call of the worker and words of the jobs come from a
 * tool's row; `Screen` (with `Detail` beside it), `job` and `verb` lie in the folder of its name. Plain data and types
 * alone, so that page, worker and command load only their own part.
 */
import type { OpenModels } from '../host/models';
import type { Plan } from '../merge/plan/plan';
import type { TensorProgress } from '../reports/job';
import { defaultsOf, type Options, type OptionValues } from '../reports/option';
import { collapseOptions } from './collapse/options';
import { convertOptions } from './convert/options';
import { compareOptions } from './difference/options';
import { loraOptions } from './lora/options';
import { moeOptions } from './moe/options';
import { transplantOptions } from './transplant/options';

export interface JobWords {
  title: string;
  /** Why another button waits for it. */
  busy: string;
}

/** @param copyPlan the plan of copying a model, which its weights are read by */
type Job = (
  request: never,
  models: OpenModels,
  signal: AbortSignal,
  onProgress: (progress: TensorProgress & { finished: readonly unknown[] }) => void,
  copyPlan: (model: string) => Promise<Plan>,
) => Promise<unknown>;

interface Row<J> {
  id: string;
  /** Name of the place. */
  text: string;
  /** Fields of its form and flags of its verb. */
  options: Options;
  /** By the name of each call. */
  jobs: { readonly [K in keyof J]: JobWords };
}

/** A row whose calls have the types of the tool's `jobs`. */
const tool =
  <J extends Readonly<Record<string, Job>>>() =>
  <const R extends Row<J>>(row: R): R & { readonly calls?: J } =>
    row;

export const TOOLS = [
  tool<typeof import('./difference/job').jobs>()({
    id: 'difference',
    text: 'Difference',
    options: compareOptions,
    jobs: {
      compare: { title: 'Measuring difference', busy: 'The difference of two models is being measured.' },
    },
  }),
  tool<typeof import('./lora/job').jobs>()({
    id: 'lora',
    text: 'LoRA',
    options: loraOptions,
    jobs: {
      measureLora: { title: 'Measuring LoRA', busy: 'A LoRA is being measured.' },
      reshapeLora: { title: 'Writing LoRA', busy: 'A LoRA is being written.' },
      extractLora: { title: 'Extracting', busy: 'A LoRA is being extracted.' },
    },
  }),
  tool<typeof import('./collapse/job').jobs>()({
    id: 'collapse',
    text: 'Collapse',
    options: collapseOptions,
    jobs: {
      measureLayers: { title: 'Measuring layers', busy: 'Layers are being measured.' },
      collapse: { title: 'Collapsing', busy: 'Layers are being collapsed.' },
    },
  }),
  tool<typeof import('./convert/job').jobs>()({
    id: 'convert',
    text: 'Convert',
    options: convertOptions,
    jobs: { convert: { title: 'Converting', busy: 'A model is being converted.' } },
  }),
  tool<typeof import('./moe/job').jobs>()({
    id: 'moe',
    text: 'Experts',
    options: moeOptions,
    jobs: {
      planMoe: { title: 'Planning experts', busy: 'A mixture of experts is being planned.' },
      writeMoe: { title: 'Writing experts', busy: 'A mixture of experts is being written.' },
    },
  }),
  tool<typeof import('./transplant/job').jobs>()({
    id: 'transplant',
    text: 'Tokenizer',
    options: transplantOptions,
    jobs: {
      planTransplant: { title: 'Planning', busy: 'Another tokenizer is being planned.' },
      transplant: { title: 'Transplanting', busy: 'A model is getting another tokenizer.' },
    },
  }),
] as const;

type Rows = (typeof TOOLS)[number];
export type ToolId = Rows['id'];

type Both<T> = (T extends unknown ? (part: T) => void : never) extends (whole: infer W) => void ? W : never;
type Jobs = Both<NonNullable<Rows['calls']>>;

/** Name of a tool's call, which is the kind of the studio's job. */
export type ToolCall = keyof Jobs;
export type RequestOf<K extends ToolCall> = Parameters<Jobs[K]>[0];
export type ProgressOf<K extends ToolCall> = Parameters<Parameters<Jobs[K]>[3]>[0];
export type ReportOf<K extends ToolCall> = Awaited<ReturnType<Jobs[K]>>;

/** The calls of a tool; none for another name. */
export function toolCallsOf(id: string): ToolCall[] {
  const row = TOOLS.find((tool) => tool.id === id);
  return Object.keys(row?.jobs ?? {}) as ToolCall[];
}

/** The tools' calls of the worker. */
export type ToolCalls = {
  [K in ToolCall]: (
    request: RequestOf<K>,
    onProgress: (progress: ProgressOf<K>) => void,
  ) => Promise<ReportOf<K>>;
};

/** Values of each tool's form. */
export type ToolValues = { [R in Rows as R['id']]: OptionValues<R['options']> };

/** Initial values of the forms: of options that exclude each other the first is given. */
export const initialValues = Object.fromEntries(
  TOOLS.map(({ id, options }) => [id, startsOf(options)]),
) as ToolValues;

function startsOf(options: Options): Record<string, unknown> {
  const groups = new Set<string>();
  const starts = Object.entries(options).filter(([, { start, either = '' }]) => {
    if (start === undefined || groups.has(either)) return false;
    if (either !== '') groups.add(either);
    return true;
  });
  return {
    ...defaultsOf(options),
    ...Object.fromEntries(starts.map(([name, { start }]) => [name, start])),
  };
}
