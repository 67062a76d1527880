/** Changes that are a product of two factors, made of what the adapter stores. */
import { type AdaptedModule, type AdapterKind, matrix, type Product } from './kind';

/** AdaLoRA (arXiv:2303.10512; PEFT tuners/adalora/layer.py): the divisor is the rank that is left, plus 10⁻⁵. */
export const adalora: AdapterKind = {
  type: 'ADALORA',
  title: 'AdaLoRA',
  formula: 'W + α/(r + 10⁻⁵) · B · diag(E) · A',
  parts: ['lora_A', 'lora_B', 'lora_E'],
  fields: [
    ...['init_r', 'target_r', 'tinit', 'tfinal', 'deltaT', 'beta1', 'beta2', 'orth_reg_weight', 'total_step'],
    'rank_pattern',
  ],
  update({ parts, alpha, inputs }) {
    const rank = parts.lora_A!.shape[0]!;
    return {
      form: 'product',
      rank,
      scale: (alpha > 0 ? alpha : rank) / (rank + 1e-5),
      left: ({ lora_B }) => lora_B!,
      right: ({ lora_A, lora_E }) => lora_A!.map((a, i) => a * lora_E![Math.floor(i / inputs)]!),
    };
  },
};

/** Norms of PEFT's rank-one parts are no smaller. */
const LEAST = 1e-4;

/** DeLoRA (arXiv:2503.18225; PEFT tuners/delora/layer.py): rank-one parts of norm λ/r, scaled by the base's column norms. */
export const delora: AdapterKind = {
  type: 'DELORA',
  title: 'DeLoRA',
  formula: 'W + B · diag(λ/(r‖aᵢ‖‖bᵢ‖)) · A · diag(‖W‖ per input)',
  parts: ['delora_A', 'delora_B', 'delora_lambda', 'delora_w_norm'],
  fields: [
    'delora_lambda',
    'module_dropout',
    'init_weights',
    'use_residual_init',
    'rank_pattern',
    'lambda_pattern',
  ],
  update({ parts, inputs, outputs }) {
    const rank = parts.delora_A!.shape[0]!;
    return {
      form: 'product',
      rank,
      scale: 1,
      left: ({ delora_B }) => delora_B!,
      right({ delora_A, delora_B, delora_lambda, delora_w_norm }) {
        const out = new Float32Array(rank * inputs);
        for (let k = 0; k < rank; k++) {
          const a = delora_A!.subarray(k * inputs, (k + 1) * inputs);
          const an = Math.max(LEAST, Math.hypot(...a));
          let squares = 0;
          for (let o = 0; o < outputs; o++) squares += delora_B![o * rank + k]! ** 2;
          const scale = delora_lambda![0]! / rank / (an * Math.max(LEAST, Math.sqrt(squares)));
          for (let c = 0; c < inputs; c++) out[k * inputs + c] = scale * a[c]! * delora_w_norm![c]!;
        }
        return out;
      },
    };
  },
};

/** GraLoRA (arXiv:2505.20355; PEFT tuners/gralora/layer.py): k × k blocks of rank r/k each, and plain LoRA beside them. */
export const gralora: AdapterKind = {
  type: 'GRALORA',
  title: 'GraLoRA',
  formula: 'W + α/r · (B_jn · A_nj) in blocks',
  parts: ['gralora_A', 'gralora_B', 'gralora_A_general', 'gralora_B_general'],
  optional: ['gralora_A_general', 'gralora_B_general'],
  fields: ['alpha', 'gralora_dropout', 'gralora_k', 'hybrid_r', 'init_weights'],
  update({ parts, inputs, outputs, alpha, refuse }) {
    const [blocks, width, r] = parts.gralora_A!.shape as [number, number, number];
    const height = parts.gralora_B!.shape[2]!;
    if (blocks * width !== inputs || blocks * height !== outputs) refuse('has blocks of another size');
    const sub = Math.floor(r / blocks);
    const hybrid = parts.gralora_A_general?.shape[0] ?? 0;
    const inBlocks = blocks * blocks * sub;
    const rank = inBlocks + hybrid;
    return {
      form: 'product',
      rank,
      scale: alpha / (r + hybrid),
      left: ({ gralora_B, gralora_B_general }) =>
        matrix(outputs, rank, (i, q) => {
          if (q >= inBlocks) return gralora_B_general![i * hybrid + q - inBlocks]!;
          const [j, k] = [Math.floor(i / height), q % (blocks * sub)];
          return Math.floor(q / (blocks * sub)) === j ? gralora_B![(j * r + k) * height + (i % height)]! : 0;
        }),
      right: ({ gralora_A, gralora_A_general }) =>
        matrix(rank, inputs, (q, c) => {
          if (q >= inBlocks) return gralora_A_general![(q - inBlocks) * inputs + c]!;
          const [j, n, s] = [Math.floor(q / sub / blocks), Math.floor(q / sub) % blocks, q % sub];
          return Math.floor(c / width) === n ? gralora_A![c * r + j * sub + s]! : 0;
        }),
    };
  },
};

/** LoHa (arXiv:2108.06098; PEFT tuners/loha/layer.py), as one product of rank r₁·r₂ (Khatri–Rao). */
export const loha: AdapterKind = {
  type: 'LOHA',
  title: 'LoHa',
  formula: 'W + α/r · (A₁·B₁) ∘ (A₂·B₂)',
  parts: ['hada_w1_a', 'hada_w1_b', 'hada_w2_a', 'hada_w2_b'],
  fields: ['alpha', 'rank_dropout', 'module_dropout', 'use_effective_conv2d', 'init_weights', 'r2'],
  update({ parts, alpha, outputs, inputs, setting, flag, refuse }) {
    if (setting('init_weights') === 'abba' || flag('use_khatri_rao', false)) refuse('is an ABBA adapter');
    const first = parts.hada_w1_b!.shape[0]!;
    const second = parts.hada_w2_b!.shape[0]!;
    const rank = first * second;
    return {
      form: 'product',
      rank,
      scale: alpha / first,
      left: ({ hada_w1_a, hada_w2_a }) =>
        matrix(outputs, rank, (o, k) => {
          return hada_w1_a![o * first + Math.floor(k / second)]! * hada_w2_a![o * second + (k % second)]!;
        }),
      right: ({ hada_w1_b, hada_w2_b }) =>
        matrix(rank, inputs, (k, c) => {
          const i = Math.floor(k / second);
          return hada_w1_b![i * inputs + c]! * hada_w2_b![(k % second) * inputs + c]!;
        }),
    };
  },
};

/** RandLoRA (arXiv:2502.00987; PEFT tuners/randlora/layer.py): random bases that all modules share, scaled and summed. */
export const randlora: AdapterKind = {
  type: 'RANDLORA',
  title: 'RandLoRA',
  formula: 'W + α/r · Σⱼ Bⱼ · diag(λⱼ) · Aⱼ · diag(γⱼ)',
  parts: ['randlora_lambda', 'randlora_gamma', 'randlora_A', 'randlora_B'],
  optional: ['randlora_A', 'randlora_B'],
  shared: ['randlora_A', 'randlora_B'],
  fields: [
    ...['randlora_alpha', 'randlora_dropout', 'projection_prng_key', 'save_projection', 'sparse'],
    ...['very_sparse', 'init_weights'],
  ],
  update({ parts, inputs, outputs, number, refuse }) {
    const [a, b] = [parts.randlora_A?.shape, parts.randlora_B?.shape];
    if (!a || !b) return refuse('does not hold its random bases (save_projection: false)');
    const [rank, bases] = parts.randlora_lambda!.shape as [number, number];
    const [least, most] = [Math.min(inputs, outputs), Math.max(inputs, outputs)];
    const width = a[2]!;
    if (a[0] !== rank || a[1] !== 1 || width < least || b[0]! < most || b[1]! < bases || b[2] !== rank) {
      refuse('has random bases of another size');
    }
    const total = rank * bases;
    // PEFT numbers the columns of B base by base, and the rows of A rank by rank
    const large = ({ randlora_B }: Record<string, Float32Array>, o: number, q: number) =>
      randlora_B![o * b[1]! * rank + q]!;
    const small = (values: Record<string, Float32Array>, q: number, c: number) => {
      const [k, n] = [Math.floor(q / bases), q % bases];
      return (
        values.randlora_lambda![q]! *
        values.randlora_A![k * width + c]! *
        values.randlora_gamma![n * least + c]!
      );
    };
    const wide = least === inputs;
    return {
      form: 'product',
      rank: total,
      scale: number('randlora_alpha', 0) / rank,
      left: (values) => matrix(outputs, total, (o, q) => (wide ? large(values, o, q) : small(values, q, o))),
      right: (values) => matrix(total, inputs, (q, c) => (wide ? small(values, q, c) : large(values, c, q))),
    };
  },
};

/** VB-LoRA (arXiv:2405.15179; PEFT tuners/vblora/layer.py): factors made of vectors of one bank, mixed by the largest logits. */
export const vblora: AdapterKind = {
  type: 'VBLORA',
  title: 'VB-LoRA',
  formula: 'W + B · A, of mixed bank vectors',
  parts: ['vblora_logits_A', 'vblora_logits_B'],
  shared: ['vblora_vector_bank'],
  fields: [
    ...[
      'num_vectors',
      'vector_length',
      'topk',
      'vblora_dropout',
      'init_vector_bank_bound',
      'init_logits_std',
    ],
    'save_only_topk_weights',
  ],
  update({ parts, inputs, outputs, number, refuse }) {
    const bank = parts.vblora_vector_bank?.shape;
    const [rank, tiles, vectors] = parts.vblora_logits_A!.shape as [number, number, number];
    const outTiles = parts.vblora_logits_B!.shape[0]!;
    const length = bank?.[1] ?? refuse('does not hold its bank of vectors');
    if (tiles * length !== inputs || outTiles * length !== outputs) refuse('has logits of another size');
    const most = number('topk', 2);
    /** The mixed vector of the logits that begin at `at`. */
    const mixed = (logits: Float32Array, values: Float32Array, at: number): Float64Array => {
      const order = [...logits.subarray(at, at + vectors).keys()]
        .sort((a, b) => logits[at + b]! - logits[at + a]!)
        .slice(0, most);
      const weights = order.map((i) => Math.exp(logits[at + i]! - logits[at + order[0]!]!));
      const sum = weights.reduce((a, b) => a + b, 0);
      return Float64Array.from({ length }, (_, c) =>
        order.reduce((v, i, k) => v + (weights[k]! / sum) * values[i * length + c]!, 0),
      );
    };
    return {
      form: 'product',
      rank,
      scale: 1,
      left({ vblora_logits_B, vblora_vector_bank }) {
        const out = new Float32Array(outputs * rank);
        for (let t = 0; t < outTiles; t++) {
          for (let k = 0; k < rank; k++) {
            const vector = mixed(vblora_logits_B!, vblora_vector_bank!, (t * rank + k) * vectors);
            for (let c = 0; c < length; c++) out[(t * length + c) * rank + k] = vector[c]!;
          }
        }
        return out;
      },
      right({ vblora_logits_A, vblora_vector_bank }) {
        const out = new Float32Array(rank * inputs);
        for (let i = 0; i < rank * tiles; i++) {
          out.set(mixed(vblora_logits_A!, vblora_vector_bank!, i * vectors), i * length);
        }
        return out;
      },
    };
  },
};

const FIELDS = ['projection_prng_key', 'save_projection', 'd_initial', 'init_weights'];

/** (λ_b ∘ B[:out]) · (λ_d ∘ A[:r, :in]) of projections that all modules share. */
function scaled({ parts, inputs, outputs, refuse }: AdaptedModule, prefix: string, halved: boolean): Product {
  const [a, b] = [parts[`${prefix}_A`]?.shape, parts[`${prefix}_B`]?.shape];
  if (!a || !b) return refuse('does not hold its random projections (save_projection: false)');
  const rank = halved ? a[0]! / 2 : a[0]!;
  const [columns, width] = [a[1]!, b[1]!];
  if (columns < inputs || b[0]! < outputs || width !== rank) refuse('has projections of another size');
  return {
    form: 'product',
    rank,
    scale: 1,
    left(values) {
      const [B, scale] = [values[`${prefix}_B`]!, values[`${prefix}_lambda_b`]!];
      return B.slice(0, outputs * rank).map((v, i) => v * scale[Math.floor(i / rank)]!);
    },
    right(values) {
      const [A, scale] = [values[`${prefix}_A`]!, values[`${prefix}_lambda_d`]!];
      return matrix(rank, inputs, (k, c) => scale[k]! * A[k * columns + c]!);
    },
  };
}

/** VeRA (arXiv:2310.11454; PEFT tuners/vera/layer.py). */
export const vera: AdapterKind = {
  type: 'VERA',
  title: 'VeRA',
  formula: 'W + diag(λ_b) · B · diag(λ_d) · A',
  parts: ['vera_lambda_b', 'vera_lambda_d'],
  shared: ['vera_A', 'vera_B'],
  fields: ['vera_dropout', ...FIELDS],
  update: (module) => scaled(module, 'vera', false),
};

/** PVeRA (PEFT tuners/pvera/layer.py): VeRA with a distribution over the latent; merging takes its mean, the first half. */
export const pvera: AdapterKind = {
  type: 'PVERA',
  title: 'PVeRA',
  formula: 'W + diag(λ_b) · B · diag(λ_d) · A, of the mean',
  parts: ['pvera_lambda_b', 'pvera_lambda_d'],
  shared: ['pvera_A', 'pvera_B'],
  fields: ['pvera_dropout', 'sample_at_inference', 'generator_seed', ...FIELDS],
  update: (module) => scaled(module, 'pvera', true),
};
