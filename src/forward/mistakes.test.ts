/**
 * Each deliberate mistake of the goldens, made in the oracle: the logits must move by as much as golden.json says, and
 * so by far more than the tolerance that the engines are held to. A test that passes would not pass with the mistake.
 */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  type Activation,
  type Architecture,
  type Attention,
  type Block,
  type Branch,
  type Linear,
  type Mlp,
  type Norm,
  partOf,
  type Step,
} from '../models/architecture';
import { resolveArchitecture } from '../models/resolution';
import { deviation, GOLDEN_NAMES, goldenWeights, loadGolden, values } from './golden.test.fixture';
import { type OracleFaults, runOracle, type Weights } from './oracle';

interface Mistake {
  change?: (a: Architecture) => Architecture;
  faults?: OracleFaults;
  weights?: (w: Weights, a: Architecture) => Weights;
}

const blocks = (f: (b: Block, i: number) => Block) => (a: Architecture) => ({
  ...a,
  blocks: a.blocks.map(f),
});
const branches = (f: (b: Branch, i: number) => Branch) =>
  blocks((b, i) => ({
    ...b,
    steps: b.steps.map((s) => ({ ...s, branches: s.branches.map((branch) => f(branch, i)) })),
  }));
const attentions = (f: (x: Attention, i: number) => Attention) =>
  branches((b, i) => (b.part.kind === 'attention' ? { ...b, part: f(b.part, i) } : b));
const mlps = (f: (x: Mlp) => Mlp) => branches((b) => (b.part.kind === 'mlp' ? { ...b, part: f(b.part) } : b));
const linears = (f: (l: Linear) => Linear) =>
  branches((b) => ({
    ...b,
    part: (b.part.kind === 'experts' || b.part.kind === 'shared'
      ? b.part
      : { ...b.part, projections: b.part.projections.map(f), output: f(b.part.output) }) as Branch['part'],
  }));
const attentionOf = (b: Block) => partOf(b, 'attention')!;
/** Every norm of the architecture, wherever it stands. */
const norms = (f: (n: Norm) => Norm) => (a: Architecture) => {
  const walk = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(walk);
    if (typeof value !== 'object' || value === null) return value;
    const walked = Object.fromEntries(Object.entries(value).map(([k, v]) => [k, walk(v)]));
    return 'epsilon' in walked ? f(walked as unknown as Norm) : walked;
  };
  return walk(a) as Architecture;
};
const without =
  <K extends string>(...keys: K[]) =>
  <T extends object>(object: T): T =>
    Object.fromEntries(Object.entries(object).filter(([k]) => !keys.includes(k as K))) as T;

const OTHER_ACTIVATION: Partial<Record<Activation, Activation>> = {
  silu: 'gelu_tanh',
  relu: 'gelu_tanh',
  gelu_erf: 'gelu_tanh',
  gelu_tanh: 'gelu_erf',
  gelu_bloom: 'gelu_erf',
};

const MISTAKES: Record<string, Mistake> = {
  act_swap: {
    change: mlps((x) => ({ ...x, activation: OTHER_ACTIVATION[x.activation]! })),
  },
  'eps_1e-6': { change: norms((n) => ({ ...n, epsilon: 1e-6 })) },
  norm_flip: { change: norms((n) => ({ ...n, kind: n.kind === 'rms' ? 'rms_plus_one' : 'rms' })) },
  no_norm_bias: { change: norms(without('bias')) },
  no_bias: { change: linears(without('bias')) },
  gate_up_swap: {
    change: mlps((x) => ({ ...x, projections: x.projections.toReversed() })),
    // where gate and up are one tensor, its halves
    weights: (w, a) => (name) => {
      const { projections } = partOf(a.blocks[0]!, 'mlp')!;
      const values = w(name);
      if (projections.length === 2 || !name.includes('gate_up')) return values;
      const swapped = values.slice(values.length / 2);
      return Float64Array.of(...swapped, ...values.slice(0, values.length / 2));
    },
  },
  fused_swap: {
    change: attentions((x) => {
      const perHead = x.layout.query.stride !== x.headDim;
      const { headDim: d, heads } = x;
      const at = (i: number) =>
        perHead ? { begin: i * heads * d, stride: d } : { begin: i * d, stride: 3 * d };
      return { ...x, layout: { query: at(0), key: at(1), value: at(2) } };
    }),
  },
  conv_t: { change: linears((l) => (l.inputs === l.outputs ? { ...l, storage: 'out_in' } : l)) },
  rope_interleaved: { faults: { interleavedRope: true } },
  rope_none: { change: attentions(without('rope')) },
  rope_full: {
    change: attentions((x) => ({ ...x, rope: { ...x.rope!, dims: x.headDim } })),
  },
  rope_noscaling: {
    change: attentions((x) => ({ ...x, rope: { ...x.rope!, scaling: { type: 'default' } } })),
  },
  rope_nosmooth: {
    change: attentions((x) => {
      const scaling = x.rope!.scaling;
      return scaling.type === 'llama3'
        ? { ...x, rope: { ...x.rope!, scaling: { ...scaling, low: scaling.high - 1e-12 } } }
        : x;
    }),
  },
  theta_1e4: {
    change: attentions((x) => (x.rope ? { ...x, rope: { ...x.rope, theta: 1e4 } } : x)),
  },
  theta_swap: {
    change: (a) => {
      const theta = (local: boolean) =>
        attentionOf(a.blocks.find((b) => (attentionOf(b).window !== undefined) === local)!).rope!.theta;
      const [local, global] = [theta(true), theta(false)];
      return attentions((x) => ({
        ...x,
        rope: { ...x.rope!, theta: x.window === undefined ? local : global },
      }))(a);
    },
  },
  nope_ignored: {
    change: (a) => attentions((x) => ({ ...x, rope: attentionOf(a.blocks[0]!).rope! }))(a),
  },
  gqa_mod: { faults: { moduloHeads: true } },
  scale_hd: { change: attentions((x) => ({ ...x, scale: x.headDim ** -0.5 })) },
  no_inv_layer: { change: attentions((x, i) => ({ ...x, scale: x.scale * (i + 1) })) },
  no_attn_cap: { change: attentions(without('softcap')) },
  no_final_cap: { change: (a) => ({ ...a, final: without('softcap')(a.final) }) },
  no_qk_norm: { change: attentions(without('queryNorm', 'keyNorm')) },
  qk_norm_after_rope: { faults: { normAfterRope: true } },
  qk_norm_per_head: { faults: { normPerHead: true } },
  window_none: { change: attentions(without('window')) },
  window_plus1: { change: attentions((x) => (x.window ? { ...x, window: x.window + 1 } : x)) },
  window_minus1: { change: attentions((x) => (x.window ? { ...x, window: x.window - 1 } : x)) },
  layer_types_swap: {
    change: (a) => {
      const window = a.blocks.map(attentionOf).find((x) => x.window)!.window!;
      return attentions((x) => (x.window ? without('window')(x) : { ...x, window }))(a);
    },
  },
  no_embed_scale: { change: (a) => ({ ...a, embedding: { ...a.embedding, scale: 1 } }) },
  no_emb_ln: { change: (a) => ({ ...a, embedding: without('norm')(a.embedding) }) },
  pos_none: { change: (a) => ({ ...a, embedding: without('positions')(a.embedding) }) },
  pos_offset0: {
    change: (a) => ({
      ...a,
      embedding: { ...a.embedding, positions: { ...a.embedding.positions!, offset: 0 } },
    }),
  },
  no_post_norm: { change: branches(without('out')) },
  residual_flip: {
    change: blocks((b) => {
      const all = b.steps.flatMap((step) => step.branches);
      return {
        ...b,
        steps: b.steps.length > 1 ? [{ branches: all }] : all.map((branch) => ({ branches: [branch] })),
      };
    }),
  },
  prenorm_flip: {
    change: blocks((b) => ({
      ...b,
      steps: b.steps.map(({ branches: [branch], after }): Step => {
        const { in: before, ...rest } = branch!;
        const flipped = { ...rest, ...(after && { in: after }) };
        return { branches: [flipped], ...(before && { after: before }) };
      }),
    })),
  },
  no_resid_mul: { change: branches((b) => ({ ...b, scale: 1 })) },
  no_logit_scale: { change: (a) => ({ ...a, final: { ...a.final, divisor: 1 } }) },
  alibi_none: { change: attentions(without('alibi')) },
  alibi_naive: {
    change: attentions((x) => ({ ...x, alibi: x.alibi!.map((_, h) => 2 ** ((-8 * (h + 1)) / x.heads)) })),
  },
};

const goldens = await Promise.all(
  GOLDEN_NAMES.map((name) => loadGolden(name, async (path) => new Uint8Array(readFileSync(path)))),
);

describe.each(goldens.map((g) => [g.name, g] as const))('%s', (_, golden) => {
  const right = resolveArchitecture(golden.config);
  const weights = goldenWeights(right, golden.weights);
  const wanted = values(golden.golden.get('logits')!);

  it.each(Object.entries(golden.info.sensitivity_rel_rms_of_logits))(
    '%s moves the logits by %f',
    (name, sensitivity) => {
      const { change, faults, weights: changed } = MISTAKES[name]!;
      const architecture = change ? change(right) : right;
      const { logits } = runOracle(
        architecture,
        changed ? changed(weights, right) : weights,
        golden.ids,
        faults,
      );
      const { relRms } = deviation(
        logits.flatMap((row) => [...row]),
        wanted,
      );
      expect(relRms).toBeGreaterThan(5 * golden.info.tolerances.logits.rel_rms);
      expect(relRms / sensitivity).toBeGreaterThan(0.97);
      expect(relRms / sensitivity).toBeLessThan(1.03);
    },
  );
});
