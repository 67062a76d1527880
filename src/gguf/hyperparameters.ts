/** The numbers of an architecture under the keys of GGUF (gguf-py/gguf/constants.py), and what llama.cpp cannot be told. */

import { AmalgamError } from '../errors';
import { counted } from '../formats/quantity';
import type { Architecture, Rope } from '../models/architecture';
import type { ConfigFile } from '../models/config-reader';
import { needSize, readSize } from '../models/config-reader';
import type { GgufArchitecture } from '../models/gguf-architectures';
import { type PlainBlock, plainBlocks, type RoutedMlp } from '../models/plain-block';
import { inverseFrequencies } from '../models/rope';
import type { GgufValue } from './header';

/** What the file cannot say though it is right on most texts. */
export interface GgufWarning {
  message: string;
  remedy: string;
  /** Nothing that anybody misses. */
  isNote?: true;
}

type Entries = [key: string, value: GgufValue][];

const u32 = (value: number): GgufValue => ({ type: 'u32', value });
const f32 = (value: number): GgufValue => ({ type: 'f32', value });

/** Metadata of the architecture, keys with its name in front. @throws AmalgamError `ConfigInvalid` */
export function hyperparameters(
  architecture: Architecture,
  gguf: GgufArchitecture,
  config: ConfigFile,
): Entries {
  const { hidden, vocab, final, embedding } = architecture;
  const blocks = plainBlocks(architecture);
  const { attention, mlp, residualScale, parallel } = blocks[0]!;
  const norm = final.norm!;
  const windows = blocks.map((block) => block.attention.window);
  const window = windows.find((size) => size !== undefined);
  const entries: Entries = [
    ['block_count', u32(blocks.length)],
    ['context_length', u32(contextLength(architecture, config))],
    ['embedding_length', u32(hidden)],
    ['feed_forward_length', u32(mlp.kind === 'mlp' ? mlp.inner : innerLength(config))],
    ['vocab_size', u32(vocab)],
    ['attention.head_count', u32(attention.heads)],
    ['attention.head_count_kv', u32(attention.keyValueHeads)],
    ['attention.key_length', u32(attention.headDim)],
    ['attention.value_length', u32(attention.headDim)],
    [`attention.layer_norm_${norm.kind.startsWith('layer') ? '' : 'rms_'}epsilon`, f32(norm.epsilon)],
    ...ropeEntries(blocks),
  ];
  if (mlp.kind === 'routed') entries.push(...expertEntries(mlp, gguf));
  if (gguf.parallel) entries.push(['use_parallel_residual', { type: 'bool', value: parallel }]);
  if (gguf.windows && window !== undefined) {
    const values = windows.map((size) => size !== undefined);
    entries.push(['attention.sliding_window', u32(window)]);
    if (gguf.windows === 'pattern')
      entries.push(['attention.sliding_window_pattern', { type: 'array', of: 'bool', values }]);
  }
  // phi3's graph asks for the key
  if (gguf.name === 'phi3') entries.push(['attention.sliding_window', u32(window ?? 0)]);
  if (attention.softcap !== undefined) entries.push(['attn_logit_softcapping', f32(attention.softcap)]);
  if (final.softcap !== undefined) entries.push(['final_logit_softcapping', f32(final.softcap)]);
  if (gguf.factors) {
    entries.push(
      ['attention.scale', f32(attention.scale)],
      ['embedding_scale', f32(embedding.scale)],
      ['residual_scale', f32(residualScale)],
      ['logit_scale', f32(final.divisor)],
    );
  }
  return entries.map(([key, value]) => [`${gguf.name}.${key}`, value]);
}

/** Width of the MLP that a model of experts has in name only. */
function innerLength(config: ConfigFile): number {
  return needSize(config, { fields: ['intermediate_size'] });
}

function expertEntries({ experts, shared }: RoutedMlp, { experts: keys }: GgufArchitecture): Entries {
  const inner = experts.experts[0]!.inner;
  return [
    ['expert_count', u32(experts.experts.length)],
    ['expert_used_count', u32(experts.router.chosen)],
    ...(keys?.width ? ([['expert_feed_forward_length', u32(inner)]] satisfies Entries) : []),
    ...(shared ? ([['expert_shared_feed_forward_length', u32(shared.inner)]] satisfies Entries) : []),
  ];
}

function contextLength({ maxPositions, hidden }: Architecture, config: ConfigFile): number {
  const fields = ['max_position_embeddings', 'n_positions', 'n_ctx', 'seq_length'];
  return readSize(config, { fields }) ?? maxPositions ?? hidden;
}

/** Of the layers that see everything, and the base frequency of those with a window. */
function ropeEntries(blocks: readonly PlainBlock[]): Entries {
  const rotary = blocks.filter(({ attention }) => attention.rope);
  const global = (rotary.find(({ attention }) => attention.window === undefined) ?? rotary[0])?.attention
    .rope;
  const local = rotary.find(({ attention }) => attention.window !== undefined)?.attention.rope;
  if (!global) return [];
  return [
    ['rope.dimension_count', u32(global.dims)],
    ['rope.freq_base', f32(global.theta)],
    ...(local && local.theta !== global.theta
      ? ([['rope.freq_base_swa', f32(local.theta)]] satisfies Entries)
      : []),
    ...scalingEntries(global),
  ];
}

function scalingEntries({ scaling }: Rope): Entries {
  const type = (value: string): Entries[number] => ['rope.scaling.type', { type: 'text', value }];
  switch (scaling.type) {
    case 'linear':
      return [type('linear'), ['rope.scaling.factor', f32(scaling.factor)]];
    case 'yarn':
      return [
        type('yarn'),
        ['rope.scaling.factor', f32(scaling.factor)],
        ['rope.scaling.original_context_length', u32(scaling.original)],
        ['rope.scaling.yarn_beta_fast', f32(scaling.fast)],
        ['rope.scaling.yarn_beta_slow', f32(scaling.slow)],
      ];
    case 'longrope':
      return [
        type('longrope'),
        ['rope.scaling.original_context_length', u32(scaling.original)],
        ['rope.scaling.attn_factor', f32(scaling.attention.short)],
      ];
    default:
      return [];
  }
}

/** Divisors of the rotary frequencies that are stored as tensors of their own [dims/2], by name. */
export function ropeFactors(
  architecture: Architecture,
): [name: string, factors: Float32Array<ArrayBuffer>][] {
  const rope = plainBlocks(architecture)[0]?.attention.rope;
  if (rope?.scaling.type === 'longrope') {
    return [
      ['rope_factors_long.weight', Float32Array.from(rope.scaling.long)],
      ['rope_factors_short.weight', Float32Array.from(rope.scaling.short)],
    ];
  }
  if (rope?.scaling.type !== 'llama3') return [];
  const plain = inverseFrequencies({ ...rope, scaling: { type: 'default' } });
  const scaled = inverseFrequencies(rope);
  return [['rope_freqs.weight', Float32Array.from(plain, (frequency, i) => frequency / scaled[i]!)]];
}

/**
 * Refuses what llama.cpp's graph of the architecture would compute otherwise.
 * @throws AmalgamError `GgufUnsupported` naming it
 */
export function requireExpressible(architecture: Architecture, gguf: GgufArchitecture): void {
  const { embedding, final, hidden } = architecture;
  const blocks = plainBlocks(architecture);
  const { heads, headDim } = blocks[0]!.attention;
  const refuse = (what: string) => refused(`llama.cpp’s ${gguf.name} cannot do this: ${what}.`);
  const usual = (blocks.length === gguf.hiddenScaleLayers ? hidden / heads : headDim) ** -0.5;
  const embeddingScale = gguf.scalesEmbedding ? Math.sqrt(hidden) : 1;
  for (const { index, attention, mlp, residualScale, parallel, ...norms } of blocks) {
    const layer = `layer ${index}`;
    requireMlp(mlp, gguf, layer, refuse);
    if (!gguf.factors && !near(attention.scale, usual)) {
      throw refuse(`scores multiplied by ${attention.scale} in ${layer} instead of ${usual}`);
    }
    if (!gguf.factors && residualScale !== 1) throw refuse('a factor for each branch');
    if (parallel && !gguf.parallel) throw refuse('attention and MLP side by side');
    if (attention.softcap !== undefined && !gguf.softcaps?.scores) throw refuse('a soft cap of scores');
    if (norms.attentionAfter || norms.mlpAfter) throw refuse('norms of the stream behind a branch');
    if (gguf.sameHeads && attention.keyValueHeads !== attention.heads) {
      throw refuse(`fewer heads of keys than of queries in ${layer}`);
    }
    if (gguf.windows === 'even' && (attention.window !== undefined) !== (index % 2 === 0)) {
      throw refuse(`${layer} ${index % 2 === 0 ? 'without' : 'with'} a sliding window`);
    }
    const every = gguf.withoutRopeEvery;
    const rotates = every === undefined || (index + 1) % every !== 0;
    if (!attention.alibi && !embedding.positions && (attention.rope !== undefined) !== rotates) {
      throw refuse(`${layer} ${rotates ? 'without' : 'with'} rotary positions`);
    }
    const scaling = attention.rope?.scaling;
    if (scaling?.type === 'yarn' && !near(scaling.attention, 0.1 * Math.log(scaling.factor) + 1)) {
      throw refuse('an attention factor of YaRN of its own');
    }
    if (scaling?.type === 'longrope' && scaling.attention.short !== scaling.attention.long) {
      throw refuse('attention factors of longrope that differ between short and long texts');
    }
  }
  if (!gguf.factors && !near(embedding.scale, embeddingScale)) throw refuse('a factor of the embedding');
  if (!gguf.factors && final.divisor !== 1) throw refuse('a divisor of the logits');
  if (final.softcap !== undefined && !gguf.softcaps?.logits) throw refuse('a soft cap of the logits');
  if (embedding.projection || final.projection) throw refuse('an embedding of another width than the stream');
  if (!final.norm) throw refuse('no norm ahead of the head');
}

/** What its graph is fixed to: an MLP everywhere, or experts everywhere. */
function requireMlp(
  mlp: PlainBlock['mlp'],
  { activations, experts: known }: GgufArchitecture,
  layer: string,
  refuse: (what: string) => AmalgamError,
): void {
  if ((mlp.kind === 'routed') !== (known !== undefined)) {
    throw refuse(`${mlp.kind === 'routed' ? 'experts' : 'an MLP without experts'} in ${layer}`);
  }
  const parts = mlp.kind === 'mlp' ? [mlp] : [mlp.experts.experts[0]!, ...(mlp.shared ? [mlp.shared] : [])];
  for (const { activation } of parts) {
    if (!activations.includes(activation)) throw refuse(`the activation ${activation}`);
  }
  if (mlp.kind === 'mlp' || !known) return;
  const { by, normalized, scale, groups, bias, onInput, norm, factors, scores } = mlp.experts.router;
  // the softmax of the chosen scores is that of all, made to sum to 1
  const isSoftmax = by === 'softmax' || by === 'softmax_of_chosen';
  const isPlain = isSoftmax && scale === 1 && (scores.scale ?? 1) === 1;
  if (!isPlain || groups || bias || onInput || norm || factors) {
    throw refuse(`the routing of experts in ${layer}`);
  }
  const sums = normalized !== undefined || by === 'softmax_of_chosen';
  if (sums !== known.normalized) {
    throw refuse(`shares of the chosen experts that ${sums ? '' : 'do not '}sum to 1`);
  }
}

/** What llama.cpp leaves out without being wrong on short texts; undefined where there is nothing. */
export function ignoredWindow(architecture: Architecture, gguf: GgufArchitecture): GgufWarning | undefined {
  if (gguf.windows) return undefined;
  const sizes = plainBlocks(architecture).flatMap(({ attention }) => attention.window ?? []);
  if (sizes.length === 0) return undefined;
  const size = Math.min(...sizes);
  return {
    message: `llama.cpp’s ${gguf.name} has no sliding window: beyond ${counted(size, 'token')} it sees more than the model did.`,
    remedy: 'Keep the context of the GGUF file below that, or run the safetensors.',
  };
}

/** llama.cpp rounds the bounds of YaRN to whole dimensions, whatever the model does; undefined where it does so too. */
export function roundedYarn(architecture: Architecture, gguf: GgufArchitecture): GgufWarning | undefined {
  const isRounded = plainBlocks(architecture).every(
    ({ attention: { rope } }) => rope?.scaling.type !== 'yarn' || rope.scaling.truncate,
  );
  if (isRounded) return undefined;
  return {
    message: `llama.cpp’s ${gguf.name} rounds the bounds of YaRN to whole dimensions, and the model does not: some of its rotary frequencies are others there.`,
    remedy: 'Run the safetensors where that matters.',
  };
}

export function refused(message: string): AmalgamError {
  return new AmalgamError(
    'GgufUnsupported',
    message,
    'Write safetensors, or choose another model for the GGUF file.',
  );
}

function near(a: number, b: number): boolean {
  return Math.abs(a - b) <= 1e-6 * Math.abs(b);
}
