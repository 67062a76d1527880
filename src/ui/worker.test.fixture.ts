/**
 * A fake worker for tests of the studio and for looking at it without the real one. It knows the sample family's
 * structure; every statistic it reports is drawn from a hash of the tensor's name. The app never imports it.
 */

import { AmalgamError } from '../errors';
import type { Recipe } from '../formats/recipe';
import type { ContributorReport, MergeCounts, Progress, TensorReport } from '../reports/job';
import type { MergeReport, MergeRequest } from '../reports/merge';
import type { HubHit, HubQuery, ModelInfo } from '../reports/models';
import type { PlanProblem, PlanReport, PlanTensor } from '../reports/plan';
import type { CacheInfo, WorkerInfo } from '../reports/worker';
import type { StudioWorker } from './state/studio';
import { chance, planFor } from './worker-plan.test.fixture';
import { type PushFixtureOptions, pretendPush } from './worker-push.test.fixture';
import {
  fixtureMemory,
  fixtureTexts,
  type Hold,
  pretendAnswers,
  pretendBest,
  pretendEvaluations,
  pretendGeneration,
  pretendLivePerplexity,
  type RunningFixtureOptions,
  type Step,
} from './worker-running.test.fixture';
import { pretendStatistics } from './worker-statistics.test.fixture';
import { fixtureTasks, pretendScores } from './worker-tasks.test.fixture';
import { pretendTools, type ToolFixtureOptions } from './worker-tools.test.fixture';

export interface FixtureOptions extends RunningFixtureOptions, ToolFixtureOptions, PushFixtureOptions {
  /** Where its jobs stand still. Default: nowhere. */
  hold?: Hold;
  layers?: number;
  /** Experts of each layer in the place of its MLP. */
  experts?: number;
  engine?: Partial<WorkerInfo>;
  problems?: PlanProblem[];
  /** Bytes the plan would download first. */
  download?: number;
  /** Fails at this share of the tensors. */
  failAt?: number;
  hubError?: AmalgamError;
}

type Tell<P> = (progress: P) => void;

export function fixtureWorker(options: FixtureOptions = {}): StudioWorker {
  const layers = options.layers ?? 6;
  let job = new AbortController();
  const begin = () => {
    job = new AbortController();
  };
  const step: Step = async (done) => {
    const { signal } = job;
    const { hold } = options;
    if (hold && done >= hold.at && !signal.aborted) {
      const canceled = new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      await Promise.race([hold.gone, canceled]);
    }
    if (signal.aborted) throw new AmalgamError('Canceled', 'Canceled.', 'Start again when you like.');
  };
  /** A call that runs models, pretended. */
  const running =
    <R, P, T>(pretend: (request: R, options: FixtureOptions, tell: Tell<P>, step: Step) => Promise<T>) =>
    async (request: R, tell: Tell<P>) => {
      begin();
      return pretend(request, options, tell, step);
    };
  const outputs: CacheInfo['outputs'] = [];
  return {
    ping: async () => {},
    restart: async () => ({ signedOut: false }),
    info: async () => ({ ...workerInfo, ...options.engine }),
    openSample: async () => sampleModels,
    openLocal: async (files) => {
      const folder = files[0]?.path.split('/')[0] ?? 'local';
      return [finetune(folder)];
    },
    openHub: async (id) => {
      if (options.hubError) throw options.hubError;
      return finetune(`${id}@0123abcd`, { title: id, origin: 'hub', commit: '0123abcd', license: 'mit' });
    },
    publishedRecipe: async () => ({ text: 'merge_method: linear', from: 'mergekit_config.yml', inputs: {} }),
    setHub: async () => undefined,
    hubWaits: () => new Promise<never>(() => undefined),
    endHubWaits: async () => undefined,
    searchHub: async (query) => {
      await pause(40);
      if (options.hubError) throw options.hubError;
      return hubHits(query);
    },
    sampleChanges: async () => null,
    plan: async (recipe) => {
      await pause(10);
      const planned = planFor(recipe, layers, options.problems ?? [], options.experts);
      return { ...planned, bytesToDownload: options.download ?? 0 };
    },
    deltaStatistics: async (request, onProgress) => {
      await pause(10);
      return pretendStatistics(planFor(request.recipe, layers, [], options.experts), onProgress);
    },
    merge: async (request, onProgress) => {
      begin();
      const report = await pretendMerge(request, layers, options, onProgress, step);
      if (request.destination.kind === 'downloads') {
        outputs.push({
          name: request.destination.name,
          bytes: 2_480_000,
          complete: true,
          files: ['model.safetensors'],
        });
      }
      return report;
    },
    evaluateMany: running(pretendEvaluations),
    findBest: running(pretendBest),
    shippedTasks: async () => fixtureTasks,
    scoreTasks: running(pretendScores),
    generate: running(pretendGeneration),
    memoryOf: async () => fixtureMemory,
    answers: running(pretendAnswers),
    livePerplexity: pretendLivePerplexity,
    steer: async () => false,
    ...pretendTools({
      ...{ options, layers, begin, step },
      keep: (name, bytes) => outputs.push({ name, bytes, complete: true, files: ['model.safetensors'] }),
    }),
    ...pretendPush(options, begin, step),
    chatPreview: async () => null,
    sampleTexts: async () => fixtureTexts,
    calibrationTexts: async () => ['kitchen.calibration.txt', 'workshop.calibration.txt'],
    addCalibrationText: async () => {},
    openDataset: async (idOrUrl) => {
      if (options.hubError) throw options.hubError;
      const commit = '0123456789abcdef0123456789abcdef01234567';
      const files = [{ path: 'data/test.parquet', bytes: 732_610, format: 'parquet' as const }];
      return { ref: `${idOrUrl}@${commit}`, id: idOrUrl, commit, license: 'cc-by-sa-4.0', files };
    },
    datasetColumns: async () => ({ columns: ['title', 'text'], conversations: null, rows: 4358 }),
    readDataset: async ({ ref, path, column = null }) => ({
      text: 'The tide turns at noon. '.repeat(40),
      ref,
      path,
      column,
      rows: 40,
      empty: 0,
      whole: true,
    }),
    cancel: async () => {
      job.abort();
    },
    interrupted: async () => [],
    discardInterrupted: async () => undefined,
    follow: () => new Promise(() => {}),
    takeOver: async () => undefined,
    onYield: () => undefined,
    sha256: async () => 'c'.repeat(64),
    outputFile: async (_name, file) => new File([`{"file": "${file}"}`], file),
    cache: async () => ({ masks: [], blobs: [], outputs: [...outputs] }),
    deleteCached: async (_kind, id) => {
      const at = outputs.findIndex((o) => o.name === id);
      if (at >= 0) outputs.splice(at, 1);
    },
  };
}

export const workerInfo: WorkerInfo = {
  auto: 'webgpu',
  webgpu: { available: true, adapter: 'Apple M3', isFallback: false, maxBufferBytes: 4_294_967_296 },
  cpu: { adapter: 'typed arrays' },
  storage: { available: true },
  version: '0.1.0',
};

const checkpoint = {
  kind: 'checkpoint',
  family: 'llama',
  parameters: 1_238_656,
  layers: 6,
  headers: 'checkpoint',
} as const;
const lora = {
  kind: 'adapter',
  family: 'llama',
  headers: 'lora',
  parameters: 112_128,
  bytes: 459_600,
  dtypes: { F32: 84 },
  adapter: { summary: 'LoRA, rank 8, alpha 16', rank: 8, baseModel: 'samples/base' },
} as const;

export const sampleModels: ModelInfo[] = [
  finetune('samples/base', { title: 'base', origin: 'sample' }),
  { ...lora, ref: 'samples/kitchen', title: 'kitchen', origin: 'sample' },
  { ...lora, ref: 'samples/harbour', title: 'harbour', origin: 'sample' },
  finetune('samples/workshop', { title: 'workshop', origin: 'sample' }),
];

/** A checkpoint of this computer. @param change its other fields */
export function finetune(ref: string, change: Partial<ModelInfo> = {}): ModelInfo {
  const own = { ref, title: ref, origin: 'local', bytes: 2_483_000, dtypes: { BF16: 57 } } as const;
  return { ...checkpoint, ...own, ...change };
}

async function pretendMerge(
  request: MergeRequest,
  layers: number,
  options: FixtureOptions,
  onProgress: (progress: Progress) => void,
  step: Step,
): Promise<MergeReport> {
  const plan = planFor(request.recipe, layers, [], options.experts);
  const began = performance.now();
  const tensors: TensorReport[] = [];
  const stages = { read: 0, upload: 0, compute: 0, readback: 0, write: 0 };
  let bytesDone = 0;
  let told = Number.NEGATIVE_INFINITY;
  let finished: TensorReport[] = [];
  for (const [i, planned] of plan.tensors.entries()) {
    await step(i);
    if (options.failAt !== undefined && i >= options.failAt * plan.tensors.length) {
      throw new AmalgamError(
        'GpuOutOfMemory',
        `The GPU has no memory left for ${planned.name} (352 × 128, BF16).`,
        'Close other tabs that use the GPU, or choose the CPU engine in the badge above.',
      );
    }
    const report = tensorReport(request.recipe, plan, planned);
    tensors.push(report);
    finished.push(report);
    bytesDone += planned.elements * 2;
    for (const [phase, share] of [
      ['read', 31],
      ['upload', 12],
      ['compute', 20],
      ['readback', 8],
      ['write', 29],
    ] as const) {
      stages[phase] += (planned.elements * share) / 4e7;
    }
    const seconds = (performance.now() - began) / 1000;
    if (seconds - told < 0.1 && i + 1 < plan.tensors.length) continue;
    told = seconds;
    onProgress({
      phase: 'merging',
      item: planned.name,
      tensorsDone: i + 1,
      tensors: plan.tensors.length,
      bytesDone,
      bytes: plan.bytesToWrite,
      bytesPerSecond: bytesDone / Math.max(seconds, 1e-3),
      secondsLeft: (seconds / bytesDone) * (plan.bytesToWrite - bytesDone),
      stages: { ...stages },
      finished,
    });
    finished = [];
  }
  return {
    recipe: request.recipe,
    recipeSha256: hex('recipe'),
    engine: request.engine === 'cpu' ? 'cpu' : 'webgpu',
    adapter: 'Apple M3',
    version: '0.1.0',
    seconds: Math.max(0.084, (performance.now() - began) / 1000),
    stages,
    peakBytes: 34_500_000,
    inputs: ['samples/base', 'samples/workshop'].map((id) => ({
      id,
      file: 'model.safetensors',
      hash: hex(id),
    })),
    shards: [{ file: 'model.safetensors', bytes: plan.bytesToWrite + 6_144, hash: `tree:${hex('shard')}` }],
    tensors,
  };
}

function tensorReport(recipe: Recipe, plan: PlanReport, planned: PlanTensor): TensorReport {
  const n = planned.elements;
  const contributors = planned.contributors.map((index): ContributorReport => {
    const id = plan.contributors[index] ?? '';
    const density = recipe.models?.[index]?.parameters.density;
    const share = typeof density === 'number' ? density : 1;
    const u = chance(planned.name + id);
    const norm = Math.sqrt(n) * 0.002 * (0.4 + u);
    const energy =
      share === 1 ? 1 : 0.45 + 0.35 * chance(id + planned.name) + 0.1 * Math.sin(planned.layer ?? 0);
    return {
      id,
      kept: Math.max(1, Math.floor(share * n)),
      threshold: share === 1 ? 0 : 0.0012 + 0.003 * u,
      norm,
      keptNorm: norm * Math.sqrt(energy),
      rescaledNorm: norm * Math.sqrt(energy),
    };
  });
  return {
    ...planned,
    contributors,
    signConflict: contributors.length < 2 ? 0 : 0.04 + 0.12 * chance(`conflict ${planned.name}`),
    cosine: contributors.map((a, i) =>
      contributors.map((b, j) =>
        i === j ? 1 : 0.3 * chance([a.id, b.id].sort().join() + planned.name) - 0.1,
      ),
    ),
    baseNorm: 40,
    outputChange: contributors.length === 0 ? 0 : 0.004 + 0.03 * chance(`change ${planned.name}`),
    nonFinite: 0,
    ...(planned.copied ? {} : { counts: countsOf(planned, contributors) }),
  };
}

/** Overlaps and losses somewhat above what random masks of the same sizes would give. */
function countsOf({ name, elements }: PlanTensor, contributors: readonly ContributorReport[]): MergeCounts {
  const both = (a: ContributorReport, b: ContributorReport) =>
    Math.floor(((a.kept * b.kept) / elements) * (1 + 0.3 * chance([a.id, b.id].sort().join() + name)));
  return {
    atBase: Math.floor(elements * (0.4 + 0.3 * chance(`at base ${name}`))),
    shared: contributors.map((a) =>
      contributors.map((b) => (a === b ? a.kept : Math.min(a.kept, b.kept, both(a, b)))),
    ),
    lost: contributors.map((c) => Math.floor(c.kept * 0.2 * chance(`lost ${c.id} ${name}`))),
  };
}

const hub: HubHit[] = [
  hit('HuggingFaceTB/SmolLM2-135M', 812_344, 301, 134_515_008),
  hit('HuggingFaceTB/SmolLM2-135M-Instruct', 604_210, 212, 134_515_008),
  hit('meta-llama/Llama-3.2-1B', 4_120_987, 2_011, 1_235_814_400, 'manual'),
  hit('Qwen/Qwen3-0.6B', 5_911_020, 640, 596_049_920),
  hit('example/SmolLM2-135M-kitchen-lora', 1_204, 8, 4_884_480),
];

function hubHits(query: HubQuery): HubHit[] {
  const words = query.text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = hub.filter((h) => words.every((w) => h.id.toLowerCase().includes(w)));
  const derived = query.derivedFrom ? found.filter((h) => h.id.includes('-kitchen')) : found;
  return derived.slice(0, query.limit);
}

function hit(
  id: string,
  downloads: number,
  likes: number,
  parameters: number,
  gated: HubHit['gated'] = false,
): HubHit {
  return { id, downloads, likes, updatedAt: '2026-05-04T10:00:00.000Z', gated, private: false, parameters };
}

function hex(text: string): string {
  return Array.from({ length: 64 }, (_, i) => Math.floor(16 * chance(`${i} ${text}`)).toString(16)).join('');
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
