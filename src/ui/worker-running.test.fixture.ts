/** The part of the fake worker that runs models: losses and texts drawn from hashes of their names. */

import { AmalgamError, errorReport } from '../errors';
import type {
  EvaluatedModel,
  EvaluateManyReport,
  EvaluateManyRequest,
  EvaluateReport,
  GenerateReport,
  GenerateRequest,
  RunningProgress,
  RunTarget,
} from '../reports/evaluate';
import type { BestRow, FindBestProgress, FindBestReport, FindBestRequest } from '../reports/find-best';
import { chance } from './worker-plan.test.fixture';

export interface RunningFixtureOptions {
  /** Milliseconds a tenth of a text, or a token, takes. */
  runPace?: number;
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
  isCanceled: () => boolean,
): Promise<EvaluateManyReport> {
  const texts = request.inputs.map((input) => ('text' in input ? input.text : input.ids.join(' ')));
  const total = Math.round(texts.join('').length / 2.8) * request.targets.length;
  for (let tenth = 0; tenth <= 10; tenth++) {
    await step(options, isCanceled);
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

/** Rows one by one, each better than the one before: base, the recipe as given, and the same at λ = 0.5. */
export async function pretendBest(
  { recipe, texts }: FindBestRequest,
  options: RunningFixtureOptions,
  onProgress: (progress: FindBestProgress) => void,
  isCanceled: () => boolean,
): Promise<FindBestReport> {
  const all = texts.map(({ name }) => ({
    ...{ name, kind: 'given' as const },
    tokens: { tuning: 640, choosing: 640, reporting: 640 },
  }));
  const blocks = (mean: number, id: string) =>
    all.map(() =>
      Array.from({ length: 10 }, (_, i) => ({ loss: 64 * mean + chance(`${id} ${i}`), tokens: 64 })),
    );
  const half = { ...recipe, parameters: { ...recipe.parameters, lambda: 0.5 } };
  const wanted = [
    { id: 'base', kind: 'base', label: 'base', target: { model: recipe.baseModel! }, lambda: null },
    { id: 'given', kind: 'given', label: 'as given', target: { recipe }, lambda: null },
    {
      id: 'task_arithmetic',
      kind: 'method',
      label: 'Task arithmetic',
      target: { recipe: half },
      lambda: 0.5,
    },
  ] as const;
  const rows: BestRow[] = [];
  for (const [i, of] of wanted.entries()) {
    await step(options, isCanceled);
    const at = (part: string) => blocks(0.8 - 0.1 * i, `${of.id} ${part}`);
    const row = {
      ...{ ...of, tried: 1, seconds: 1 },
      blocks: { tuning: at('tuning'), choosing: at('choosing'), reporting: at('reporting') },
    };
    rows.push(row);
    const told = { done: i + 1, total: wanted.length, seconds: i + 1, secondsLeft: wanted.length - i - 1 };
    onProgress({ step: 'methods', item: of.label, ...told, rows: [row], texts: all });
  }
  return {
    ...{ texts: all, rows, best: 'task_arithmetic', alike: [], course: [], lately: null, ended: 'done' },
    ...{ kept: [], overlap: null, measured: 3, reused: 0, seconds: 3 },
  };
}

function pretendReport(name: string, text: string, { window, stride }: EvaluateManyRequest): EvaluateReport {
  const tokens = Math.round(text.length / 2.8);
  const home = /^[a-z]+/.exec(text)?.[0] ?? '';
  const meanNll = 0.55 + 0.2 * chance(home + name) - (name.includes(home) ? 0.25 : 0);
  return {
    perplexity: Math.exp(meanNll),
    meanNll,
    tokens,
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
  isCanceled: () => boolean,
): Promise<GenerateReport> {
  const name = nameOf(request.target);
  refuse(name, options);
  let whole = '';
  for (let i = 0; i < request.maxTokens; i++) {
    await step(options, isCanceled);
    const text = ` ${WORDS[Math.floor(WORDS.length * chance(`${name} ${request.seed} ${i}`))]}`;
    whole += text;
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
    ids: Array.from({ length: request.maxTokens }, (_, i) => i),
    ended: 'length',
    tokensPerSecond: 20,
    engine: 'cpu',
    adapter: 'typed arrays',
    seconds: request.maxTokens / 20,
    peakBytes: 34_500_000,
  };
}

function refuse(name: string, { cannotRun = {} }: RunningFixtureOptions): void {
  for (const [part, error] of Object.entries(cannotRun)) if (name.includes(part)) throw error;
}

async function step({ runPace = 0 }: RunningFixtureOptions, isCanceled: () => boolean): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, runPace));
  if (isCanceled()) throw new AmalgamError('Canceled', 'Canceled.', 'Start again when you like.');
}

function nameOf(target: RunTarget): string {
  return 'model' in target ? target.model : `${target.recipe.mergeMethod} ${JSON.stringify(target.recipe)}`;
}
