/** The part of the fake worker that compares, extracts and collapses: figures drawn from hashes of names. */

import type { AmalgamError } from '../errors';
import type { PlanTensor } from '../reports/plan';
import { TOOLS, type ToolCalls } from '../tools';
import type { CollapseProgress, MeasureLayersReport } from '../tools/collapse/report';
import type {
  CompareProgress,
  CompareReport,
  LoraLikeness,
  TensorDifference,
} from '../tools/difference/report';
import type { ExtractLoraReport } from '../tools/lora/report';
import type { WorkerCalls } from '../worker/calls';
import { chance, planFor } from './worker-plan.test.fixture';
import type { Step } from './worker-running.test.fixture';

export interface ToolFixtureOptions {
  /** Error of the tools. */
  toolError?: AmalgamError;
}

interface Tools {
  options: ToolFixtureOptions;
  layers: number;
  begin(): void;
  step: Step;
  keep(name: string, bytes: number): void;
}

/** Every call of a tool, refusing. */
const notPretended = Object.fromEntries(
  TOOLS.flatMap(({ jobs }) =>
    Object.keys(jobs).map((name) => [name, () => Promise.reject(new Error(`${name} is not pretended.`))]),
  ),
) as unknown as ToolCalls;

const STAGES = { read: 0.4, upload: 0.1, compute: 0.8, readback: 0.1, write: 0.02 };
const FACTS = { engine: 'webgpu', adapter: 'Apple M3', version: '0.1.0', seconds: 1.4 } as const;

export function pretendTools(tools: Tools) {
  const { options, layers, step } = tools;
  const begin = () => {
    tools.begin();
    if (options.toolError) throw options.toolError;
  };
  return {
    ...notPretended,
    async compare(request, onProgress) {
      begin();
      const planned = tensorsOf(request.base, layers);
      const differences: TensorDifference[] = [];
      for (const [i, tensor] of planned.entries()) {
        await step(i);
        const difference = differenceOf(tensor, request.loraAnalysis !== false);
        differences.push(difference);
        onProgress(compareProgress('comparing', tensor.name, i + 1, planned.length, [difference]));
      }
      const files = request.destination ? REPORT_FILES : [];
      if (request.destination?.kind === 'downloads') tools.keep(request.destination.name, 88_000);
      return compareReport(request, differences, files);
    },
    async extractLora(request, onProgress) {
      begin();
      const linears = tensorsOf(request.base, layers).filter((t) => t.shape.length === 2 && t.layer !== null);
      for (const [i, tensor] of linears.entries()) {
        await step(i);
        onProgress(compareProgress('extracting', tensor.name, i + 1, linears.length, []));
      }
      if (request.destination.kind === 'downloads') tools.keep(request.destination.name, 460_000);
      return extractReport(request, linears);
    },
    async measureLora(request) {
      begin();
      await step(0);
      const base = 'lora' in request ? 'samples/base' : request.base;
      const linears = tensorsOf(base, layers).filter((t) => t.shape.length === 2 && t.layer !== null);
      return {
        modules: linears.map((t) => ({
          ...{ module: t.name.replace(/\.weight$/, ''), kind: 'linear', shape: t.shape, squares: 1.36 },
          ...('lora' in request ? { rank: 4, scale: 2 } : { rank: null, scale: null }),
          values: [1, 0.5, 0.3, 0.1],
        })),
        facts: 'lora' in request ? [{ label: 'Kind', value: 'LoRA, r 4, α 8' }] : [],
        ...{ notes: [], ...FACTS, stages: STAGES },
      };
    },
    async reshapeLora({ lora, rank, destination }) {
      begin();
      await step(0);
      if (destination.kind === 'downloads') tools.keep(destination.name, 460_000);
      const linears = tensorsOf('samples/base', layers).filter(
        (t) => t.shape.length === 2 && t.layer !== null,
      );
      const asked = { base: lora, finetuned: lora, rank: rank ?? { kind: 'rank', rank: 8 } } as const;
      return extractReport(asked, linears);
    },
    async effects({ recipe, without }) {
      begin();
      await step(0);
      const weights = planFor(recipe, layers, []).tensors.filter(
        ({ copied, layer, shape }) => !copied && layer !== null && shape.length === 2,
      );
      return without.map((target) =>
        weights.map(({ name }) => ({
          name,
          effect:
            ((name.length % 7) - 3) / 8 + ('recipe' in target ? chance(JSON.stringify(target) + name) : 0),
        })),
      );
    },
    async measureLayers(request, onProgress) {
      begin();
      for (let i = 1; i <= layers; i++) {
        await step(i - 1);
        onProgress(collapseProgress('measuring', `layer ${i - 1}`, i, layers));
      }
      return depthReport(request.model, layers, request.curve?.block);
    },
    collapse: () => Promise.reject(new Error('not pretended: the journeys collapse the sample')),
  } satisfies Partial<WorkerCalls>;
}

function tensorsOf(model: string, layers: number): PlanTensor[] {
  const copy = {
    mergeMethod: 'passthrough',
    models: [{ model, parameters: {} }],
    parameters: {},
    amalgam: {},
  };
  return planFor(copy, layers, []).tensors;
}

const REPORT_FILES = [
  'difference.txt',
  'weight_differences.json',
  'config_comparison.json',
  'architecture_comparison.json',
  'lora_analysis.json',
  'comparison_report.html',
];

function compareProgress(
  phase: CompareProgress['phase'],
  item: string,
  done: number,
  of: number,
  finished: TensorDifference[],
): CompareProgress {
  return {
    ...{ phase, item, tensorsDone: done, tensors: of, finished, stages: STAGES },
    ...{ bytesDone: done * 45_056, bytes: of * 45_056, bytesPerSecond: 812e6, secondsLeft: of - done },
  };
}

function collapseProgress(phase: CollapseProgress['phase'], item: string, done: number, of: number) {
  return { ...compareProgress('comparing', item, done, of, []), phase, finished: [] };
}

function differenceOf(tensor: PlanTensor, spectra: boolean): TensorDifference {
  const { name, layer, module, shape, elements } = tensor;
  const u = chance(name);
  const normBase = Math.sqrt(elements) * 0.04;
  const relative = 0.01 + 0.12 * u * (module.startsWith('mlp') ? 1 : 0.5);
  const isMatrix = shape.length === 2;
  const rows = shape[0] ?? 1;
  const low = 0.5 * relative;
  return {
    ...{ name, layer, module, shape, elements, dtype: { base: 'BF16', finetuned: 'BF16' } },
    meanAbs: 0.02 * relative,
    maxAbs: 0.2 * relative,
    normBase,
    normFinetuned: normBase * Math.hypot(1, relative),
    normDelta: normBase * relative,
    relative,
    changedRatio: 0.55 + 0.4 * u,
    signFlipRatio: 0.01 + 0.05 * u,
    bitDifferentRatio: 0.6 + 0.4 * u,
    cosine: 1 / Math.hypot(1, relative),
    rows: {
      count: rows,
      min: low,
      mean: relative,
      max: 2 * relative,
      strip: Array.from({ length: Math.min(64, rows) }, (_, i) => low + relative * chance(`${name} ${i}`)),
    },
    stableRank: isMatrix ? 2 + 6 * u : null,
    modified: true,
    ...(isMatrix && spectra ? { lora: likeness(normBase * relative, 8 + Math.round(20 * u)) } : {}),
    seconds: 0.002 + 0.004 * u,
  };
}

function likeness(norm: number, rank95: number): LoraLikeness {
  const values = Array.from({ length: 64 }, (_, i) => norm * 0.5 * Math.exp(-i / (rank95 / 2)));
  return {
    singularValues: values,
    effectiveRank: 64,
    rank95,
    effectiveRankIsBound: true,
    rank95IsBound: false,
    potentialLora: rank95 < 13,
    exact: true,
  };
}

function compareReport(
  { base, finetuned, threshold = 1e-6 }: Parameters<WorkerCalls['compare']>[0],
  tensors: TensorDifference[],
  files: string[],
): CompareReport {
  const facts = {
    modelType: 'llama',
    architectures: ['LlamaForCausalLM'],
    ...{ layers: 6, hiddenSize: 128, intermediateSize: 352, attentionHeads: 8, keyValueHeads: 4 },
    ...{ vocabularySize: 1024, tiedHead: true, tensors: tensors.length, parameters: 1_238_656 },
    dtypes: { BF16: tensors.length },
  };
  const none = { count: 0, examples: [] };
  return {
    ...{ base, finetuned, ...FACTS, stages: STAGES, threshold, tensors, files },
    total: {
      ...{ elements: 1_238_656, normBase: 44.5, normDelta: 2.9, relative: 0.065 },
      ...{ changedRatio: 0.82, bitDifferentRatio: 0.84 },
      ...{ compared: tensors.length, modified: tensors.length, identical: 0 },
    },
    ranking: [...tensors].sort((a, b) => b.relative - a.relative).map((t) => t.name),
    onlyInBase: ['model.layers.0.self_attn.rotary_emb.inv_freq'],
    onlyInFinetuned: [],
    shapeMismatches: [{ name: 'lm_head.weight', base: [1024, 128], finetuned: [1030, 128] }],
    raw: [],
    failed: [],
    config: {
      differences: [
        { field: 'rope_theta', base: '10000', finetuned: '500000', harmless: false },
        { field: 'torch_dtype', base: '"bfloat16"', finetuned: null, harmless: true },
      ],
      words: ['1 field changes what the model computes: rope_theta is 10000 and 500000.'],
    },
    architecture: { base: facts, finetuned: facts, words: ['Both are built alike.'] },
    tokenizer: {
      ...{ verdict: 'same-file', vocabulary: { base: 1024, finetuned: 1024 } },
      ...{ onlyInBase: none, onlyInFinetuned: none, moved: none },
      words: ['Both have the same tokenizer file.'],
    },
    words: [`${tensors.length} tensors compared: ${tensors.length} modified, 0 identical.`],
  };
}

function extractReport(
  { base, finetuned, rank }: Pick<Parameters<WorkerCalls['extractLora']>[0], 'base' | 'finetuned' | 'rank'>,
  linears: readonly PlanTensor[],
): ExtractLoraReport {
  const modules = linears.map((t) => ({
    module: t.name.replace(/\.weight$/, ''),
    kind: 'linear' as const,
    shape: t.shape,
    rank: rank.kind === 'rank' ? rank.rank : 8,
    fullRank: Math.min(...t.shape),
    normDelta: 0.4 + chance(t.name),
    singularValues: likeness(1, 8).singularValues,
    exact: true,
    error: 3e-7 * (1 + chance(t.name)),
    maxError: 1e-8,
  }));
  return {
    ...{ base, finetuned, ...FACTS, stages: STAGES, rank, modules },
    saved: [{ name: 'model.norm.weight', shape: [128], bytes: 512 }],
    left: [{ name: 'model.embed_tokens.weight', normDelta: 0.3, why: 'Embeddings were to be left out.' }],
    merged: { error: 4.1e-7, maxError: 3e-8, failed: [] },
    parameters: 112_128,
    files: [
      { file: 'adapter_model.safetensors', bytes: 459_600, hash: `tree:${'a'.repeat(64)}` },
      { file: 'README.md', bytes: 1_200 },
      { file: 'adapter_config.json', bytes: 800 },
    ],
    notes: [],
  };
}

function depthReport(model: string, layers: number, block?: number): MeasureLayersReport {
  const influence = Array.from({ length: layers }, (_, i) => 0.04 + 0.3 * chance(`layer ${i}`));
  const map = Array.from({ length: layers + 1 }, (_, i) =>
    Array.from({ length: layers + 1 }, (_, j) => Math.min(0.5, 0.07 * Math.abs(i - j))),
  );
  return {
    ...{ model, engine: 'webgpu', adapter: 'Apple M3', seconds: 2.1, layers, influence },
    distance: map,
    calibration: { sequences: 4, tokens: 900, window: 256 },
    ...(block
      ? {
          curve: Array.from({ length: Math.max(0, layers - block + 1) }, (_, layer) => ({
            layer,
            similarity: 0.9 - 0.05 * chance(`curve ${layer}`),
          })),
        }
      : {}),
  };
}
