/** Cases of the benchmark: each is a recipe over generated checkpoints. */
import { readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Recipe, RecipeParameters } from '../../src/formats/recipe';
import { recipeRepositories } from '../../src/formats/recipe-models';
import type { BackendKind } from '../../src/reports/backend';
import {
  evaluationFlops,
  importanceFlops,
  LLAMA_1B,
  LLAMA_3B,
  QWEN_05B,
  QWEN_SLICE,
  type Shape,
} from './checkpoints';
import type { Way } from './rows';

export type Look = 'profile' | 'compare' | 'evaluate';

export interface Case {
  name: string;
  /** Job of the case; `profile` is the statistics pass, `evaluate` the perplexity of the base. */
  job: 'merge' | Look;
  shape: Shape | 'sample';
  method: string;
  /** Full fine-tunes, or LoRA adapters on the base. */
  contributors: { kind: 'tuned' | 'lora'; count: number };
  parameters: RecipeParameters;
  modelParameters: RecipeParameters;
  engines: readonly BackendKind[];
  /** Whether what importance chose is there already, or made anew every time. */
  masks?: 'cold' | 'cached';
  /** Floating point operations of its matrix products, where it consists of those. */
  flops?: number;
}

/** Ways to the models: always the browser's storage; for files on the processor the disk too. */
export function waysOf({ job, shape, masks }: Case, engine: BackendKind): readonly Way[] {
  if (job === 'evaluate' || shape === 'sample' || masks !== undefined) return ['storage'];
  return job === 'merge' && engine === 'cpu' ? ['command', 'folder', 'storage'] : ['command', 'storage'];
}

/** A case's models by their folders or their names: the base first. */
export type Folders = readonly [string, ...string[]];

/** Names of model folders in recipes. */
export const namesOf = ([base, ...others]: Folders): Folders => [
  basename(base),
  ...others.map((folder) => basename(folder)),
];

const tuned = (count: number) => ({ kind: 'tuned', count }) as const;
const both = ['cpu', 'webgpu'] as const;
const cpu = ['cpu'] as const;

type Method = Pick<Case, 'method' | 'parameters' | 'modelParameters'>;

const LINEAR: Method = { method: 'linear', parameters: {}, modelParameters: { weight: 0.5 } };
const TASK: Method = { method: 'task_arithmetic', parameters: {}, modelParameters: { weight: 0.5 } };
const TIES: Method = { method: 'ties', parameters: {}, modelParameters: { weight: 0.5, density: 0.2 } };
const DARE: Method = { method: 'dare_ties', parameters: {}, modelParameters: { weight: 0.5, density: 0.5 } };
const DELLA: Method = {
  method: 'della',
  parameters: {},
  modelParameters: { weight: 0.5, density: 0.5, epsilon: 0.1 },
};
const SLERP: Method = { method: 'slerp', parameters: { t: 0.5 }, modelParameters: {} };

function merge(
  shape: Case['shape'],
  method: Method,
  contributors: Case['contributors'],
  engines: Case['engines'],
) {
  const name = shape === 'sample' ? 'sample' : shape.name;
  const what = contributors.kind === 'lora' ? 'LoRA' : 'models';
  return {
    ...method,
    job: 'merge' as const,
    name: `${name}, ${method.method}, ${contributors.count === 0 ? 'base alone' : `${contributors.count} ${what}`}`,
    shape,
    contributors,
    engines,
  };
}

/** Tokens of a text that is evaluated, or that models are calibrated on. */
export const EVALUATED_TOKENS = 512;
export const CALIBRATION_TOKENS = 1024;
const CALIBRATION_WINDOW = 256;
/** The name of the text they are calibrated on. */
export const CALIBRATION = 'tokens';

const IMPORTANCE: Method = {
  method: 'task_arithmetic',
  parameters: {
    selector: 'importance',
    // its steps are as many as the data wants: there is no floor for them
    compensation: 'off',
    calibration_windows: CALIBRATION_TOKENS / CALIBRATION_WINDOW,
    calibration_window: CALIBRATION_WINDOW,
  },
  modelParameters: { weight: 0.5, density: 0.2, calibration: CALIBRATION },
};

/** Importance of one model, made on the way to a merge; or a merge that finds it. */
function importance(shape: Shape, what: 'cold merge' | 'cached merge'): Case {
  const isCached = what === 'cached merge';
  return {
    ...merge(shape, IMPORTANCE, tuned(1), cpu),
    name: {
      'cold merge': `${shape.name}, task_arithmetic by importance, cold masks`,
      'cached merge': `${shape.name}, task_arithmetic by importance, cached masks`,
    }[what],
    masks: isCached ? 'cached' : 'cold',
    ...(isCached ? {} : { flops: importanceFlops(shape, CALIBRATION_TOKENS) }),
  };
}

/** Reads the models and writes nothing. `compare` takes base and first model, `evaluate` the base alone. */
function look(job: Look, shape: Shape, count: number): Case {
  const what = {
    profile: `statistics pass, ${count} models`,
    compare: 'compare two models',
    evaluate: `evaluate ${EVALUATED_TOKENS} tokens`,
  }[job];
  // the floor reads the same tensors as the merge
  const method: Method =
    job === 'evaluate' ? { ...LINEAR, method: 'passthrough', modelParameters: {} } : TASK;
  const flops = job === 'evaluate' ? { flops: evaluationFlops(shape, EVALUATED_TOKENS) } : {};
  return { ...merge(shape, method, tuned(count), cpu), job, name: `${shape.name}, ${what}`, ...flops };
}

/** Cases of the whole benchmark. The software adapter takes minutes for them, so webgpu is for `--engine webgpu`. */
export const CASES: readonly Case[] = [
  merge('sample', TIES, { kind: 'lora', count: 2 }, both),
  merge(QWEN_05B, LINEAR, tuned(2), cpu),
  merge(QWEN_05B, TASK, tuned(2), cpu),
  merge(QWEN_05B, TIES, tuned(2), cpu),
  merge(QWEN_05B, DARE, tuned(2), cpu),
  merge(QWEN_05B, DELLA, tuned(2), cpu),
  merge(QWEN_05B, TASK, { kind: 'lora', count: 3 }, cpu),
  merge(QWEN_05B, SLERP, tuned(1), cpu),
  merge(QWEN_05B, TIES, tuned(4), cpu),
  merge(QWEN_05B, LINEAR, tuned(4), cpu),
  look('profile', QWEN_05B, 2),
  look('compare', QWEN_05B, 1),
  look('evaluate', QWEN_05B, 0),
  merge(LLAMA_1B, TASK, { kind: 'lora', count: 3 }, cpu),
  // no fine-tunes: base, output and the floor's copy alone are 19 GB
  merge(LLAMA_3B, LINEAR, tuned(0), cpu),
  merge(LLAMA_3B, TASK, { kind: 'lora', count: 3 }, cpu),
  importance(QWEN_SLICE, 'cold merge'),
];

/** The short version: the sample family, and two layers of the 0.5 B shape. */
export const QUICK_CASES: readonly Case[] = [
  merge('sample', TIES, { kind: 'lora', count: 2 }, both),
  merge(QWEN_SLICE, LINEAR, tuned(2), both),
  merge(QWEN_SLICE, TASK, tuned(2), cpu),
  // the software adapter takes half a minute for it
  merge(QWEN_SLICE, TIES, tuned(2), cpu),
  merge(QWEN_SLICE, DARE, tuned(2), cpu),
  merge(QWEN_SLICE, DELLA, tuned(2), cpu),
  merge(QWEN_SLICE, SLERP, tuned(1), cpu),
  look('profile', QWEN_SLICE, 2),
  look('compare', QWEN_SLICE, 1),
  look('evaluate', QWEN_SLICE, 0),
  importance(QWEN_SLICE, 'cold merge'),
  importance(QWEN_SLICE, 'cached merge'),
  merge(QWEN_SLICE, TASK, { kind: 'lora', count: 3 }, cpu),
];

/** The recipe of a case. @param models names of the base and of the fine-tunes or adapters */
export function recipeOf(c: Case, [base, ...others]: Folders): Recipe {
  const contributors = c.contributors.kind === 'lora' ? others.map((name) => `${base}+${name}`) : others;
  // slerp is the path from its base to one other model; passthrough, and linear of nothing else, take the base as it is
  const withBase = ['slerp', 'passthrough'].includes(c.method) || contributors.length === 0;
  const listed = withBase ? [base, ...contributors] : contributors;
  return {
    mergeMethod: c.method,
    ...(['linear', 'passthrough'].includes(c.method) ? {} : { baseModel: base }),
    models: listed.map((model) => ({ model, parameters: c.modelParameters })),
    parameters: c.parameters,
    amalgam: {},
  };
}

/** The recipe with shards of 250 MB: a picked folder takes several files sooner than a large one, closed while the next are written. */
export const inShards = (recipe: Recipe): Recipe => ({ ...recipe, amalgam: { shardBytes: 250e6 } });

/** The weight files that a case reads: linear takes no base. */
export function weightFiles(c: Case, folders: Folders): string[] {
  const named = new Set(recipeRepositories(recipeOf(c, namesOf(folders))));
  return folders
    .filter((folder) => named.has(basename(folder)))
    .flatMap((folder) =>
      readdirSync(folder)
        .filter((file) => file.endsWith('.safetensors'))
        .map((file) => join(folder, file)),
    );
}
