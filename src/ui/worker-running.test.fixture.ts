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
import type { SearchPoint, SearchProgress, SearchReport, SearchRequest } from '../reports/search';
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

/** A valley over the weights, with its floor at 0.7 each. */
export async function pretendSearch(
  { recipe, tasks, evaluations, seed }: SearchRequest,
  options: RunningFixtureOptions,
  onProgress: (progress: SearchProgress) => void,
  isCanceled: () => boolean,
): Promise<SearchReport> {
  const count = (recipe.models ?? []).filter(({ model }) => model !== recipe.baseModel).length;
  const variables = Array.from({ length: count }, (_, i) => `weight ${i + 1}`);
  const points: SearchPoint[] = [];
  while (points.length < evaluations) {
    await step(options, isCanceled);
    const fresh = Array.from({ length: Math.min(6, evaluations - points.length) }, (_, k): SearchPoint => {
      const n = points.length + k;
      const values = Object.fromEntries(
        variables.map((name) => [
          name,
          n === 0 ? 1 : Number((0.7 + (chance(`${name} ${seed} ${n}`) - 0.5) / (1 + n / 20)).toFixed(4)),
        ]),
      );
      const away = Object.values(values).reduce((sum, value) => sum + (value - 0.7) ** 2, 0);
      if (!tasks) return { values, perplexity: Math.exp(0.6 + away) };
      const value = Math.round(10 * Math.exp(-away)) / 12;
      return { values, perplexity: null, score: { value, stderr: 0.1, rightLogShare: -away } };
    });
    points.push(...fresh);
    const secondsLeft = (evaluations - points.length) * 0.4;
    onProgress({ done: points.length, total: evaluations, points: fresh, secondsLeft });
  }
  const loss = ({ perplexity, score }: SearchPoint) => (score ? -score.rightLogShare : perplexity!);
  const best = points.reduce((at, p, i) => (loss(p) < loss(points[at]!) ? i : at), 0);
  return { variables, points, best, recipe, reused: 0, seconds: 3 };
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
