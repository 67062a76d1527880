/**
 * Rows of the routers (mergekit 0.1.4, `moe/router.py`): the mean over an expert's prompts of the stream of the base that enters
 * each layer, at the last token of the prompt, less that of its negative prompts, at length 1.
 */
import { chances, maskKey, normals } from '../../backend/philox';
import { AmalgamError } from '../../errors';
import { openRunningModel, plannedFile, type RunningModel } from '../../evaluate/running-model';
import { tokenizerConfig, tokenText } from '../../foreign/tokenizer';
import { displayName } from '../../formats/names';
import { readRows } from '../../forward/queue';
import type { Runner } from '../../forward/runner';
import type { OpenModels } from '../../host/models';
import { singularValues } from '../../linalg/small-svd';
import type { Plan } from '../../merge/plan/plan';
import type { BackendChoice } from '../../reports/backend';
import type { RunningProgress } from '../../reports/evaluate';
import { groupSequences } from '../collapse/measures';
import type { Gates } from './plan';
import { type MoeExpert, type MoeRecipe, readsPrompts } from './recipe';

interface GateOptions {
  models: OpenModels;
  engine: BackendChoice;
  signal: AbortSignal;
  onProgress(progress: RunningProgress): void;
}

/** Experts with a row in the routers: shared ones have, where they have prompts or rows are random. */
export function gatedExperts(recipe: MoeRecipe): MoeExpert[] {
  const shared = recipe.sharedExperts.filter(
    (one) => !readsPrompts(recipe) || one.positivePrompts.length > 0,
  );
  return [...recipe.experts, ...shared];
}

/**
 * The rows of every layer, one an expert.
 * @param base plan of the base as it is stored
 * @throws AmalgamError `TextEmpty` for a prompt without tokens, and what running the base throws
 */
export async function gateRows(recipe: MoeRecipe, base: Plan, options: GateOptions): Promise<Gates> {
  const { models, engine, signal, onProgress } = options;
  const model = await openRunningModel({ plan: base, models, engine, exact: true, signal, onProgress });
  try {
    const encode = await promptEncoder(base, model, options);
    const rows: Float32Array[][] = [];
    for (const { positivePrompts, negativePrompts } of gatedExperts(recipe)) {
      const sum = await meanStreams(model.runner, await encode(positivePrompts), recipe.gateMode, signal);
      if (negativePrompts.length > 0) {
        const less = await meanStreams(model.runner, await encode(negativePrompts), recipe.gateMode, signal);
        for (const [layer, stream] of sum.entries())
          for (let i = 0; i < stream.length; i++) stream[i]! -= less[layer]![i]!;
      }
      rows.push(sum.map(unit));
    }
    return model.runner.architecture.blocks.map((_, layer) => rows.map((own) => own[layer]!));
  } finally {
    model.close();
  }
}

const unit = (x: Float64Array) => {
  const norm = Math.max(1e-8, Math.hypot(...x));
  return Float32Array.from(x, (value) => value / norm);
};

/** Ids of prompts: the token that begins a text, where the tokenizer names one, and the prompt's own. */
async function promptEncoder(base: Plan, model: RunningModel, { models, signal }: GateOptions) {
  const tokenizer = await model.tokenizer();
  const file = await plannedFile(base, models, 'tokenizer_config.json', signal);
  const begin = file && tokenText(tokenizerConfig(new TextDecoder().decode(file)).bos_token);
  return async (prompts: readonly string[]) => {
    const ids = await tokenizer.encodeAll(prompts.map((prompt) => (begin ?? '') + prompt));
    const all = file ? ids : ids.map((own) => [...tokenizer.prefix, ...own]);
    const empty = all.findIndex((own) => own.length === 0);
    if (empty < 0) return all;
    throw new AmalgamError(
      'TextEmpty',
      `The prompt ${JSON.stringify(displayName(prompts[empty]!))} has no token.`,
      'Write a prompt, or choose gate_mode random.',
    );
  };
}

/** Per layer the mean over prompts of its stream, [hidden]: of the last token, of all, or the sum of all embeddings at length 1. */
async function meanStreams(
  runner: Runner,
  prompts: readonly number[][],
  mode: MoeRecipe['gateMode'],
  signal: AbortSignal,
): Promise<Float64Array[]> {
  const { hidden, blocks } = runner.architecture;
  const isCheap = mode === 'cheap_embed';
  const depth = isCheap ? 1 : blocks.length;
  const means = Array.from({ length: depth }, () => new Float64Array(hidden));
  const add = (layer: number, ids: readonly number[], t: number, rows: Float32Array, at: number) => {
    const isLast = t === ids.length - 1;
    const share = mode === 'hidden_avg' ? 1 / ids.length : isCheap || isLast ? 1 : 0;
    if (share === 0) return;
    for (let i = 0; i < hidden; i++) means[layer]![i]! += (share * rows[at + i]!) / prompts.length;
  };
  for (const sequences of groupSequences(
    prompts.map((ids) => ({ ids })),
    runner.rowsPerPass,
  )) {
    const tokens = sequences.flatMap(({ ids }) => Array.from(ids, (_, t) => [ids as number[], t] as const));
    const seen = means.map(() => 0);
    const pass = runner.startPass({
      ...{ sequences, output: 'none', signal },
      taps: {
        async residual(layer, rows) {
          if (layer >= depth) return;
          const values = await readRows(rows);
          for (let r = 0; r < rows.rows; r++) add(layer, ...tokens[seen[layer]!++]!, values, r * hidden);
        },
      },
    });
    try {
      // what enters a layer is seen in the step before it
      for (let step = 0; step < depth; step++) await pass.step();
    } finally {
      pass.close();
    }
  }
  if (!isCheap) return means;
  const embedded = Float64Array.from(unit(means[0]!));
  return blocks.map(() => embedded.slice());
}

/** Random rows: standard normal, or uniform as PyTorch begins a linear layer. */
export function randomRows(recipe: MoeRecipe, layers: number, hidden: number): Gates {
  const { gateMode, seed } = recipe;
  return Array.from({ length: layers }, (_, layer) =>
    gatedExperts(recipe).map((_, row) => {
      const key = maskKey(seed, 'gate', `${layer} ${row}`);
      if (gateMode === 'random') return Float32Array.from(normals(hidden, key));
      const [chance, bound] = [chances(key), 1 / Math.sqrt(hidden)];
      return Float32Array.from({ length: hidden }, (_, i) => (2 * chance(i) - 1) * bound);
    }),
  );
}

/** Ratio of the largest to the smallest singular value of a router from which on mergekit calls it degenerate. */
const MOST_CONDITION = 5;

/** Says which routers hardly tell their experts apart; empty where all do. */
export function gateWarnings(recipe: MoeRecipe, gates: Gates): string[] {
  if (!readsPrompts(recipe)) return [];
  const alike = gates.flatMap((rows, layer) => (condition(rows) > MOST_CONDITION ? [layer] : []));
  if (alike.length === 0) return [];
  const which = alike.length === gates.length ? 'all layers' : `layers ${alike.join(', ')}`;
  return [
    `Warning: The prompts are alike to the routers of ${which}: some experts will hardly be chosen. Give the experts prompts that differ more, or negative ones.`,
  ];
}

function condition(rows: readonly Float32Array[]): number {
  const data = Float64Array.from(rows.flatMap((row) => [...row]));
  const values = singularValues({ rows: rows[0]!.length, cols: rows.length, data });
  return values[0]! / Math.max(1e-30, values.at(-1)!);
}
