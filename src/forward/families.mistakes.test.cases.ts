/** Deliberate mistakes in every kind of block, made in the architecture: the goldens must expose each. */
import type { Architecture, Block, Part, Step } from '../models/architecture';

/** The architecture with every part of a kind changed. */
const parts =
  <K extends Part['kind']>(kind: K, change: (part: Extract<Part, { kind: K }>) => Part) =>
  (a: Architecture): Architecture => ({
    ...a,
    blocks: a.blocks.map((block) => ({
      ...block,
      steps: block.steps.map((step) => ({
        ...step,
        branches: step.branches.map((branch) =>
          branch.part.kind === kind
            ? { ...branch, part: change(branch.part as Extract<Part, { kind: K }>) }
            : branch,
        ),
      })),
    })),
  });
const withoutKey = <T extends object>(object: T, key: keyof T): T =>
  Object.fromEntries(Object.entries(object).filter(([k]) => k !== key)) as T;

const steps =
  (change: (step: Step) => Step) =>
  (a: Architecture): Architecture => ({
    ...a,
    blocks: a.blocks.map((block) => ({ ...block, steps: block.steps.map(change) })),
  });
const blocks =
  (change: (block: Block) => Block) =>
  (a: Architecture): Architecture => ({
    ...a,
    blocks: a.blocks.map(change),
  });
/** Every part ahead of a branch changed. */
const ahead = (change: (part: Extract<Part, { kind: 'shared' }>) => Part) =>
  steps((step) => ({
    ...step,
    branches: step.branches.map((branch) =>
      branch.ahead?.kind === 'shared' ? { ...branch, ahead: change(branch.ahead) } : branch,
    ),
  }));

/** By the fixture that shows it. */
export const FAMILY_MISTAKES: readonly [
  what: string,
  family: string,
  change: (a: Architecture) => Architecture,
][] = [
  [
    'halves rotate instead of neighbors',
    'cohere2',
    parts('attention', (p) => (p.rope ? { ...p, rope: withoutKey(p.rope, 'pairs') } : p)),
  ],
  [
    'heads are normed ahead of the rotation',
    'hunyuan_dense',
    parts('attention', (p) => withoutKey(p, 'normAfterRope')),
  ],
  ['queries of latent attention do not rotate', 'minicpm3', parts('attention', (p) => withoutKey(p, 'rope'))],
  [
    'heads in quarters taken in turn',
    'codegen',
    parts('attention', (p) => ({
      ...p,
      layout: { ...p.layout, query: withoutKey(p.layout.query, 'group') },
    })),
  ],
  ['no gate of attention', 'qwen3_5_text', parts('attention', (p) => withoutKey(p, 'gate'))],
  ['ReLU without the square', 'nemotron', parts('mlp', (p) => ({ ...p, activation: 'relu' }))],
  ['another slope of xIELU', 'apertus', parts('mlp', (p) => ({ ...p, activation: 'relu2' }))],
  ['no bias of the logits', 'phi', (a) => ({ ...a, final: withoutKey(a.final, 'bias') })],
  [
    'shares that do not sum to 1',
    'ernie4_5_moe',
    parts('experts', (p) => ({ ...p, router: withoutKey(p.router, 'normalized') })),
  ],
  [
    'softmax instead of sigmoid',
    'lfm2_moe',
    parts('experts', (p) => ({ ...p, router: { ...p.router, by: 'softmax' } })),
  ],
  [
    'one expert instead of two',
    'ernie4_5_moe',
    parts('experts', (p) => ({ ...p, router: { ...p.router, chosen: 1 } })),
  ],
  [
    'SiLU behind the short convolution',
    'lfm2_moe',
    parts('conv', (p) => ({ ...p, conv: { ...p.conv, silu: true } })),
  ],
  [
    'no bias of the convolution',
    'mamba',
    parts('recurrence', (p) => ({ ...p, conv: withoutKey(p.conv, 'bias') })),
  ],
  ['b and c exchanged', 'mamba2', parts('recurrence', (p) => ({ ...p, b: p.c, c: p.b }))],
  [
    'the gate behind the norm',
    'mamba2',
    parts('recurrence', (p) => ({ ...p, gate: { ...p.gate, first: false } })),
  ],
  ['no delta in the delta rule', 'qwen3_5_text', parts('recurrence', (p) => ({ ...p, rule: 'space' }))],
  ['keys not brought to length 1', 'qwen3_5_text', parts('recurrence', (p) => withoutKey(p, 'unit'))],
  [
    'sizes of neighboring gates exchanged',
    'recurrent_gemma',
    parts('lru', (p) => ({ ...p, projections: p.projections.toReversed() })),
  ],
  [
    'layers take the keys of another one of their kind',
    'gemma4_shared',
    parts('attention', (p) => (p.keysOf === 2 ? { ...p, keysOf: 0 } : p)),
  ],
  [
    'every layer gets the first one’s share of the token',
    'gemma4_shared',
    parts('per_layer', (p) => ({ ...p, layer: 0 })),
  ],
  [
    'experts scored by what enters them',
    'gemma4_moe',
    parts('experts', (p) => ({ ...p, router: withoutKey(p.router, 'norm') })),
  ],
  [
    'no factors of experts',
    'gemma4_moe',
    parts('experts', (p) => ({ ...p, router: withoutKey(p.router, 'factors') })),
  ],
  ['no norm of MLP and experts together', 'gemma4_moe', steps((step) => withoutKey(step, 'sum'))],
  ['every value of a gate', 'gemma3n_shared', parts('mlp', (p) => withoutKey(p, 'sparse'))],
  ['a sum that is not divided by √2', 'gemma3n_shared', steps((step) => withoutKey(step, 'keep'))],
  [
    'the first stream as it is to the others',
    'gemma3n_shared',
    blocks((block) => ({ ...block, ...(block.planes && { planes: withoutKey(block.planes, 'scale') }) })),
  ],
  [
    'a narrow residual behind the norm of another epsilon',
    'gemma3n_shared',
    parts('laurel', (p) => ({ ...p, norm: { ...p.norm, kind: 'rms_plus_one' } })),
  ],
  [
    'a shared transformer without the layer’s own update',
    'zamba2',
    ahead((part) => ({
      ...part,
      mlp: { ...part.mlp, projections: part.mlp.projections.map((l) => withoutKey(l, 'update')) },
    })),
  ],
  [
    'scores of a shared transformer by the whole width of a head',
    'zamba2',
    ahead((part) => ({
      ...part,
      attention: { ...part.attention, scale: part.attention.headDim ** -0.5 },
    })),
  ],
  [
    'nothing ahead of Mamba',
    'zamba2',
    steps((step) => ({ ...step, branches: step.branches.map((b) => withoutKey(b, 'ahead')) })),
  ],
  ['no sinks', 'gpt_oss', parts('attention', (p) => withoutKey(p, 'sinks'))],
  [
    'gate and values of an expert as halves',
    'gpt_oss',
    parts('experts', (p) => ({
      ...p,
      experts: p.experts.map((e) => ({ ...e, activation: 'silu' })),
    })),
  ],
  [
    'decaying attention that does not decay',
    'minimax',
    parts('recurrence', (p) => ({
      ...p,
      constants: { tensors: p.constants.tensors.map((t) => ('fill' in t ? { ...t, fill: 0 } : t)) },
    })),
  ],
  [
    'the gate of decaying attention by SiLU',
    'minimax',
    parts('recurrence', (p) => ({ ...p, gate: { ...p.gate, by: 'silu' } })),
  ],
  [
    'shares that multiply what leaves an expert',
    'llama4_text',
    parts('experts', (p) => ({ ...p, router: withoutKey(p.router, 'onInput') })),
  ],
  [
    'softmax in the place of sparsemixer',
    'phimoe',
    parts('experts', (p) => ({ ...p, router: { ...p.router, by: 'softmax' } })),
  ],
  ['β of the delta rule within 1', 'olmo_hybrid', parts('recurrence', (p) => ({ ...p, betaScale: 1 }))],
  [
    'no norms of step, b and c',
    'jamba',
    parts('recurrence', (p) => ({ ...p, ...(p.narrow && { narrow: { ...p.narrow, states: [] as never } }) })),
  ],
  ['norms of a state over all its groups', 'nemotron_h', parts('recurrence', (p) => withoutKey(p, 'norm'))],
];
