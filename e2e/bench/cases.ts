/** What the benchmark merges: each case is a recipe over generated checkpoints. */
import type { Recipe, RecipeParameters } from '../../src/formats/recipe';
import { LLAMA_1B, LLAMA_3B, QWEN_05B, QWEN_SLICE, type Shape } from './shapes';

export type Look = 'profile' | 'compare' | 'evaluate';

export interface Case {
  name: string;
  /** What is done with the models; `profile` is the statistics pass, `evaluate` the perplexity of the base. */
  job: 'merge' | Look;
  shape: Shape | 'sample';
  method: string;
  /** Full fine-tunes, or LoRA adapters on the base. */
  contributors: { kind: 'tuned' | 'lora'; count: number };
  parameters: RecipeParameters;
  modelParameters: RecipeParameters;
  engines: readonly ('cpu' | 'webgpu')[];
}

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
    name: `${name}, ${method.method}, ${contributors.count} ${what}`,
    shape,
    contributors,
    engines,
  };
}

/** Tokens of a text that is evaluated. */
export const EVALUATED_TOKENS = 512;

/** Reads the models and writes nothing. `compare` takes base and first model, `evaluate` the base alone. */
function look(job: Look, shape: Shape, count: number): Case {
  const what = {
    profile: `statistics pass, ${count} models`,
    compare: 'compare two models',
    evaluate: `evaluate ${EVALUATED_TOKENS} tokens`,
  }[job];
  // what the floor reads is what is read
  const method: Method =
    job === 'evaluate' ? { ...LINEAR, method: 'passthrough', modelParameters: {} } : TASK;
  return { ...merge(shape, method, tuned(count), cpu), job, name: `${shape.name}, ${what}` };
}

/** Cases of the whole benchmark. The software adapter takes minutes for them, so webgpu is for `--engine webgpu`. */
export const CASES: readonly Case[] = [
  merge('sample', TIES, { kind: 'lora', count: 2 }, both),
  merge(QWEN_05B, LINEAR, tuned(2), cpu),
  merge(QWEN_05B, TASK, tuned(2), cpu),
  merge(QWEN_05B, TIES, tuned(2), cpu),
  merge(QWEN_05B, DARE, tuned(2), cpu),
  merge(QWEN_05B, DELLA, tuned(2), cpu),
  merge(QWEN_05B, SLERP, tuned(1), cpu),
  merge(QWEN_05B, TIES, tuned(4), cpu),
  merge(QWEN_05B, LINEAR, tuned(4), cpu),
  look('profile', QWEN_05B, 2),
  look('compare', QWEN_05B, 1),
  look('evaluate', QWEN_05B, 0),
  merge(LLAMA_1B, TASK, { kind: 'lora', count: 3 }, cpu),
  merge(LLAMA_3B, TASK, tuned(1), cpu),
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
  merge(QWEN_SLICE, TASK, { kind: 'lora', count: 3 }, cpu),
];

/** The recipe of a case over models with the given names. */
export function recipeOf(c: Case, base: string, contributors: readonly string[]): Recipe {
  // slerp is the path from its base to one other model, passthrough is the base as it is
  const listed = ['slerp', 'passthrough'].includes(c.method) ? [base, ...contributors] : contributors;
  return {
    mergeMethod: c.method,
    ...(['linear', 'passthrough'].includes(c.method) ? {} : { baseModel: base }),
    models: listed.map((model) => ({ model, parameters: c.modelParameters })),
    parameters: c.parameters,
    amalgam: {},
  };
}
