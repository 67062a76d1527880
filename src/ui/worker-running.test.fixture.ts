/** The part of the fake worker that runs models: losses and texts drawn from hashes of their names. */

import { type AmalgamError, errorReport } from '../errors';
import type {
  AnswersRequest,
  EvaluatedModel,
  EvaluateManyReport,
  EvaluateManyRequest,
  EvaluateReport,
  GenerateReport,
  GenerateRequest,
  LivePerplexityRequest,
  MemoryReport,
  RunningProgress,
  RunTarget,
  WrittenToken,
} from '../reports/evaluate';
import type {
  BestRow,
  BestText,
  FindBestProgress,
  FindBestReport,
  FindBestRequest,
  TextPart,
} from '../reports/find-best';
import { type LossBlock, meanLoss } from '../reports/paired-error';
import { chance } from './worker-plan.test.fixture';

/** Where a pretended job stands still: before the step `at`, until it is canceled or let go on. */
export interface Hold {
  at: number;
  letGo(): void;
  gone: Promise<void>;
}

export function holding(at: number): Hold {
  let letGo = () => {};
  const gone = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  return { at, letGo, gone };
}

/** The next step of a pretended job, after so many; rejects where the job was canceled. */
export type Step = (done: number) => Promise<void>;

export interface RunningFixtureOptions {
  /** Models that cannot be run: part of a reference → why. */
  cannotRun?: Readonly<Record<string, AmalgamError>>;
}

const WORDS = ['stir', 'the', 'lamp', 'until', 'tide', 'turns', 'and', 'oil', 'hinge', 'slowly'];

export const fixtureTexts = ['common', 'kitchen', 'harbour', 'workshop'].map((name) => ({
  name,
  text: `${name}: Put the pot on the bench. `.repeat(700),
}));

export async function pretendEvaluations(
  request: EvaluateManyRequest,
  options: RunningFixtureOptions,
  onProgress: (progress: RunningProgress) => void,
  step: Step,
): Promise<EvaluateManyReport> {
  const texts = request.inputs.map((input) => ('text' in input ? input.text : input.ids.join(' ')));
  const total = Math.round(texts.join('').length / 2.8) * request.targets.length;
  for (let tenth = 0; tenth <= 10; tenth++) {
    await step(tenth);
    const secondsLeft = (total * (10 - tenth)) / 5000;
    onProgress({ phase: 'running', done: (total * tenth) / 10, total, rate: 500, secondsLeft });
  }
  const models = request.targets.map((target): EvaluatedModel => {
    const name = nameOf(target);
    const outcomes = texts.map((text) => {
      try {
        refuse(name, options);
        return { report: pretendReport(name, text, request) };
      } catch (thrown) {
        return { error: errorReport(thrown) };
      }
    });
    return { outcomes, bytes: 2_480_000 };
  });
  return { models, bytesRead: 7_440_000, peakBytes: 34_500_000, batches: 1, seconds: total / 500 };
}

/** Rows beside the contributors that are reported on. */
const REPORTED = 6;

/** Base, contributors, some methods at their λ, and with `search` one more: all drawn from hashes of their names. */
export async function pretendBest(
  { recipe, texts, tasks, steps, also = [] }: FindBestRequest,
  _: RunningFixtureOptions,
  onProgress: (progress: FindBestProgress) => void,
  step: Step,
): Promise<FindBestReport> {
  const contributors = (recipe.models ?? []).map(({ model }) => model).filter((m) => m !== recipe.baseModel);
  const names = tasks
    ? tasks.tasks.map((task) => ('name' in task ? task.name : task.file.name))
    : texts.length > 0
      ? texts.map(({ name }) => name)
      : contributors;
  const kind = tasks ? 'task' : texts.length > 0 ? 'given' : 'generated';
  const tokens = { tuning: 500, choosing: 500, reporting: 500 };
  const known = names.map((name): BestText => ({ name, kind, tokens }));
  const methods = steps.includes('methods')
    ? ['linear', 'task_arithmetic', 'ties', 'dare_ties', 'della', 'breadcrumbs', 'ram', 'karcher']
    : [];
  const wanted: Pick<BestRow, 'id' | 'kind' | 'label' | 'target' | 'lambda'>[] = [
    { id: 'base', kind: 'base', label: 'base', target: { model: recipe.baseModel ?? '' }, lambda: null },
    ...contributors.map((model) => ({
      ...{
        id: `model ${model}`,
        kind: 'contributor' as const,
        label: model,
        target: { model },
        lambda: null,
      },
    })),
    { id: 'given', kind: 'given', label: 'As given', target: { recipe }, lambda: null },
    ...also.map((of, i) => ({ ...of, id: `also ${i + 1}`, kind: 'also' as const, lambda: null })),
    ...[...methods, ...(steps.includes('gram') ? ['gram'] : [])].map((id, i) => {
      const lambda = id === 'linear' || i % 3 === 2 ? null : Math.round(30 + 10 * i) / 100;
      const parameters = lambda === null ? {} : { lambda };
      const target = { recipe: { ...recipe, mergeMethod: id, parameters } };
      return { id, kind: id === 'gram' ? ('gram' as const) : ('method' as const), label: id, target, lambda };
    }),
    ...(steps.includes('search')
      ? [
          {
            id: 'search',
            kind: 'search' as const,
            label: 'Search',
            target: { recipe: { ...recipe, parameters: { ...recipe.parameters, lambda: 0.61 } } },
            lambda: 0.61,
          },
        ]
      : []),
  ];
  const rows: BestRow[] = [];
  const began = performance.now();
  for (const row of wanted) {
    await step(rows.length);
    const name = nameOf(row.target);
    const part = (of: TextPart) =>
      names.map((text) => pretendBlocks(`${text} ${of}`, name, `${row.id} ${text}`, 16));
    const isModel = row.kind === 'base' || row.kind === 'contributor';
    // the last merges are compared on the choosing part alone
    const isReported = isModel || row.kind === 'also' || rows.length < contributors.length + REPORTED;
    const blocks = {
      tuning: isModel ? null : part('tuning'),
      choosing: part('choosing'),
      reporting: isReported ? part('reporting') : null,
    };
    const made: BestRow = { ...row, blocks, tried: row.lambda === null ? 1 : 8, seconds: 0.1 };
    rows.push(made);
    const left = wanted.length - rows.length;
    onProgress({
      ...{
        step: row.kind === 'search' ? 'search' : 'methods',
        item: row.label,
        done: rows.length,
        total: wanted.length,
      },
      ...{ seconds: (performance.now() - began) / 1000, secondsLeft: 0.4 * left, rows: [made], texts: known },
    });
  }
  const merges = rows.filter(({ target }) => 'recipe' in target);
  return {
    ...{
      texts: known,
      rows,
      best: merges[0]?.id ?? 'base',
      course: [],
      lately: null,
      ended: 'done',
      left: { methods: 0, gram: 0, search: 0 },
    },
    ...{ kept: [], overlap: null, measured: rows.length, reused: 0, seconds: 3 },
  };
}

/** Losses of blocks of 32 tokens: each block has its own level, which all models share, and each model a noise of its own. */
function pretendBlocks(text: string, name: string, row: string, count: number): LossBlock[] {
  const level = 0.55 + 0.2 * chance(text.split(' ')[0] + name) + 0.1 * chance(row);
  return Array.from({ length: count }, (_, i) => ({
    loss: 32 * (level + 0.2 * chance(`${text} ${i}`) + 0.05 * chance(`${name} ${text} ${i}`)),
    tokens: 32,
  }));
}

function pretendReport(name: string, text: string, { window, stride }: EvaluateManyRequest): EvaluateReport {
  const tokens = Math.round(text.length / 2.8);
  const home = /^[a-z]+/.exec(text)?.[0] ?? '';
  const better = name.includes(home) ? 0.25 : 0;
  const blocks = pretendBlocks(home, name, home, Math.floor(tokens / 32)).map((block) => ({
    ...block,
    loss: block.loss - 32 * better,
  }));
  const meanNll = meanLoss([blocks]).mean;
  return {
    perplexity: Math.exp(meanNll),
    meanNll,
    blocks,
    tokens: 32 * blocks.length,
    bitsPerByte: meanNll / 2.8 / Math.LN2,
    protocol: { window: window ?? 256, stride: stride ?? 128, bos: 0 },
    engine: 'cpu',
    adapter: 'typed arrays',
    seconds: tokens / 500,
    peakBytes: 34_500_000,
  };
}

export async function pretendGeneration(
  request: GenerateRequest,
  options: RunningFixtureOptions,
  onProgress: (progress: RunningProgress) => void,
  step: Step,
): Promise<GenerateReport> {
  const name = nameOf(request.target);
  refuse(name, options);
  let whole = '';
  const tokens: WrittenToken[] = [];
  for (let i = 0; i < request.maxTokens; i++) {
    await step(i);
    const text = ` ${WORDS[Math.floor(WORDS.length * chance(`${name} ${request.seed} ${i}`))]}`;
    whole += text;
    tokens.push({ text, probability: 0.41, ...(request.against && { against: i === 0 ? 0.02 : 0.4 }) });
    onProgress({
      phase: 'running',
      done: i + 1,
      total: request.maxTokens,
      rate: 20,
      secondsLeft: null,
      text,
    });
  }
  return {
    text: whole,
    promptTokens: 2,
    tokens,
    ids: Array.from({ length: request.maxTokens }, (_, i) => i),
    ended: 'length',
    tokensPerSecond: 20,
    engine: 'cpu',
    adapter: 'typed arrays',
    seconds: request.maxTokens / 20,
    peakBytes: 34_500_000,
  };
}

/** @returns by model and prompt */
export async function pretendAnswers(
  { targets, prompts, ...settings }: AnswersRequest,
  options: RunningFixtureOptions,
  onProgress: (progress: RunningProgress) => void,
  step: Step,
): Promise<string[][]> {
  const answers: string[][] = [];
  for (const target of targets) {
    const own: string[] = [];
    for (const [i, prompt] of prompts.entries()) {
      const seed = settings.seed + i;
      const request = { ...settings, target, prompt, seed };
      own.push((await pretendGeneration(request, options, onProgress, step)).text);
    }
    answers.push(own);
  }
  return answers;
}

/** What a text takes. */
export const fixtureMemory: MemoryReport = {
  ...{ bytes: 2.9e9, weightBytes: 2.5e9, roomBytes: 6e9, factorBytes: 0.2e9, cacheBytes: 0.1e9 },
  ...{ tokens: 120, differenceBytes: 0, mergeBytes: 0, passingBytes: 0 },
};

export async function pretendLivePerplexity({
  recipe,
  stretches,
}: LivePerplexityRequest): Promise<LossBlock[]> {
  return pretendBlocks(JSON.stringify(stretches[0]), nameOf({ recipe }), 'live', 8);
}

function refuse(name: string, { cannotRun = {} }: RunningFixtureOptions): void {
  for (const [part, error] of Object.entries(cannotRun)) if (name.includes(part)) throw error;
}

function nameOf(target: RunTarget): string {
  return 'model' in target ? target.model : `${target.recipe.mergeMethod} ${JSON.stringify(target.recipe)}`;
}
