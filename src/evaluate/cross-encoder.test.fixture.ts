/** Tiny cross-encoders with random weights, their tokenizers, and the scores that they give in f64. */
import { readFileSync } from 'node:fs';
import { erf } from '../backend/special';
import { memoryFolder, safetensors } from '../inputs/memory-models.test.support';

const SAMPLE = JSON.parse(readFileSync('public/samples/base/tokenizer.json', 'utf8')) as object;
const [CLS, SEP] = [
  { SpecialToken: { id: '<s>', type_id: 0 } },
  { SpecialToken: { id: '</s>', type_id: 0 } },
];
const sequence = (id: string, type_id: number) => ({ Sequence: { id, type_id } });
const AROUND = { cls: ['<s>', 0], sep: ['</s>', 1] };
export const TEMPLATE = {
  type: 'TemplateProcessing',
  single: [CLS, sequence('A', 0), SEP],
  pair: [CLS, sequence('A', 0), SEP, sequence('B', 1), { SpecialToken: { id: '</s>', type_id: 1 } }],
  special_tokens: {
    '<s>': { id: '<s>', ids: [0], tokens: ['<s>'] },
    '</s>': { id: '</s>', ids: [1], tokens: ['</s>'] },
  },
};
const BYTES = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true };
export const PROCESSORS = {
  BertProcessing: { type: 'BertProcessing', ...AROUND },
  RobertaProcessing: { type: 'RobertaProcessing', ...AROUND, trim_offsets: true, add_prefix_space: false },
  TemplateProcessing: TEMPLATE,
  'the other text first': {
    ...TEMPLATE,
    pair: [sequence('B', 1), SEP, SEP, sequence('A', 0), CLS],
  },
  'a sequence of them': { type: 'Sequence', processors: [BYTES, TEMPLATE] },
  none: null,
};
export const tokenizerOf = (post_processor: unknown) => JSON.stringify({ ...SAMPLE, post_processor });

export type Numbers = Map<string, { values: Float32Array; shape: readonly number[] }>;

const SIZES = { layers: 2, hidden: 12, heads: 3, inner: 20, vocab: 1024, positions: 80 };

/** Of every kind: its config, where its positions begin, and the shapes of its head. */
export const KINDS = {
  bert: {
    config: { model_type: 'bert', architectures: ['BertForSequenceClassification'], type_vocab_size: 2 },
    processor: PROCESSORS.BertProcessing,
    offset: 0,
    head: { 'bert.pooler.dense': [12, 12], classifier: [1, 12] },
  },
  roberta: {
    config: {
      ...{ model_type: 'xlm-roberta', architectures: ['XLMRobertaForSequenceClassification'] },
      ...{ type_vocab_size: 1, pad_token_id: 1 },
    },
    processor: PROCESSORS.RobertaProcessing,
    offset: 2,
    head: { 'classifier.dense': [12, 12], 'classifier.out_proj': [1, 12] },
  },
} as const;
export type Kind = keyof typeof KINDS;

export function tinyEncoder(
  kind: Kind,
  seed: number,
): { numbers: Numbers; folder: ReturnType<typeof memoryFolder> } {
  const { layers, hidden, heads, inner, vocab, positions } = SIZES;
  const { config, head, processor } = KINDS[kind];
  const shapes: Record<string, readonly number[]> = {};
  const linear = (name: string, [out, inputs]: readonly [number, number]) => {
    shapes[`${name}.weight`] = [out, inputs];
    shapes[`${name}.bias`] = [out];
  };
  const norm = (name: string) => {
    shapes[`${name}.weight`] = [hidden];
    shapes[`${name}.bias`] = [hidden];
  };
  shapes[`${kind}.embeddings.word_embeddings.weight`] = [vocab, hidden];
  shapes[`${kind}.embeddings.position_embeddings.weight`] = [positions, hidden];
  shapes[`${kind}.embeddings.token_type_embeddings.weight`] = [config.type_vocab_size, hidden];
  norm(`${kind}.embeddings.LayerNorm`);
  for (let i = 0; i < layers; i++) {
    const layer = `${kind}.encoder.layer.${i}`;
    for (const part of ['query', 'key', 'value']) linear(`${layer}.attention.self.${part}`, [hidden, hidden]);
    linear(`${layer}.attention.output.dense`, [hidden, hidden]);
    norm(`${layer}.attention.output.LayerNorm`);
    linear(`${layer}.intermediate.dense`, [inner, hidden]);
    linear(`${layer}.output.dense`, [hidden, inner]);
    norm(`${layer}.output.LayerNorm`);
  }
  for (const [name, shape] of Object.entries(head)) linear(name, shape);
  let state = seed;
  const random = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 31 - 1;
  };
  const numbers: Numbers = new Map(
    Object.entries(shapes).map(([name, shape]) => [
      name,
      { shape, values: Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, random) },
    ]),
  );
  const file = safetensors(
    Object.fromEntries(
      [...numbers].map(([name, { shape }]) => [name, ['F32', [...shape]] as const]),
    ) as never,
  );
  let at = file.length - [...numbers.values()].reduce((sum, { values }) => sum + values.byteLength, 0);
  for (const { values } of numbers.values()) {
    file.set(new Uint8Array(values.buffer), at);
    at += values.byteLength;
  }
  const folder = memoryFolder(`${kind}-${seed}`, {
    'config.json': {
      ...config,
      ...{ num_hidden_layers: layers, hidden_size: hidden, num_attention_heads: heads },
      ...{ intermediate_size: inner, vocab_size: vocab, max_position_embeddings: positions },
      ...{ id2label: { 0: 'LABEL_0' }, hidden_act: 'gelu', layer_norm_eps: 1e-5 },
    },
    'tokenizer.json': tokenizerOf(processor),
    'tokenizer_config.json': { model_max_length: 64 },
    'model.safetensors': file,
  });
  return { numbers, folder };
}

/** The score of a pair in f64 (Devlin et al. 2019; transformers modeling_bert.py, modeling_roberta.py). */
export function scoreOf(
  kind: Kind,
  numbers: Numbers,
  ids: readonly number[],
  types: readonly number[],
): number {
  const { layers, hidden, heads } = SIZES;
  const at = (name: string) => numbers.get(name)!.values;
  const rowOf = (name: string, row: number) => [...at(name).subarray(row * hidden, (row + 1) * hidden)];
  const linear = (name: string, x: readonly number[]) =>
    [...at(`${name}.bias`)].map((bias, o) =>
      x.reduce((sum, value, i) => sum + value * at(`${name}.weight`)[o * x.length + i]!, bias),
    );
  const norm = (name: string, x: readonly number[]) => {
    const mean = x.reduce((a, b) => a + b, 0) / x.length;
    const deviation = Math.sqrt(x.reduce((sum, value) => sum + (value - mean) ** 2, 0) / x.length + 1e-5);
    return x.map((v, i) => ((v - mean) / deviation) * at(`${name}.weight`)[i]! + at(`${name}.bias`)[i]!);
  };
  const sum = (...rows: readonly (readonly number[])[]) =>
    rows[0]!.map((_, i) => rows.reduce((total, row) => total + row[i]!, 0));
  let x = ids.map((id, position) =>
    norm(
      `${kind}.embeddings.LayerNorm`,
      sum(
        rowOf(`${kind}.embeddings.word_embeddings.weight`, id),
        rowOf(`${kind}.embeddings.position_embeddings.weight`, position + KINDS[kind].offset),
        rowOf(`${kind}.embeddings.token_type_embeddings.weight`, kind === 'bert' ? types[position]! : 0),
      ),
    ),
  );
  const width = hidden / heads;
  for (let i = 0; i < layers; i++) {
    const layer = `${kind}.encoder.layer.${i}`;
    const [q, k, v] = ['query', 'key', 'value'].map((part) =>
      x.map((row) => linear(`${layer}.attention.self.${part}`, row)),
    );
    x = x.map((row, t) => {
      const mixed = Array.from({ length: heads }, (_, h) => {
        const own = (r: readonly number[]) => r.slice(h * width, (h + 1) * width);
        const weights = k!.map((key) =>
          Math.exp(own(q![t]!).reduce((dot, value, c) => dot + value * own(key)[c]!, 0) / Math.sqrt(width)),
        );
        const total = weights.reduce((a, b) => a + b, 0);
        return sum(...v!.map((value, s) => own(value).map((one) => (one * weights[s]!) / total)));
      }).flat();
      const attended = norm(
        `${layer}.attention.output.LayerNorm`,
        sum(row, linear(`${layer}.attention.output.dense`, mixed)),
      );
      const inner = linear(`${layer}.intermediate.dense`, attended).map(
        (value) => 0.5 * value * (1 + erf(value * Math.SQRT1_2)),
      );
      return norm(`${layer}.output.LayerNorm`, sum(attended, linear(`${layer}.output.dense`, inner)));
    });
  }
  const [first, last] = Object.keys(KINDS[kind].head) as [string, string];
  return linear(last, linear(first, x[0]!).map(Math.tanh))[0]!;
}
