/** The tensors of a GGUF file, by what each is in the architecture (gguf-py/gguf/tensor_mapping.py of llama.cpp). */
import type { Architecture, Attention, Experts, Linear, Mlp, Norm, Vector } from '../models/architecture';
import type { GgufArchitecture } from '../models/gguf-architectures';
import { type PlainBlock, plainBlocks, type RoutedMlp } from '../models/plain-block';

/** How the rows of a stored matrix come to stand in the file; a vector has rows of one element. */
export type Layout =
  | { kind: 'as_stored' }
  /** Stored as [in, out], or so many outputs at a time; row i of each is the output `from[i]`. */
  | { kind: 'transposed'; rows?: number; from?: readonly number[] }
  /** Groups of `rows` rows, row i of each being row `from[i]` of the stored ones. */
  | { kind: 'rows'; rows: number; from: readonly number[] };

export interface GgufTensor {
  name: string;
  /** The architecture's name of the tensor it is made of. */
  source: string;
  /** As the file has it, outermost first. */
  shape: readonly number[];
  /** The name of one more tensor of that shape, of the second half of every group of rows of the layout. */
  second?: string;
  layout: Layout;
  /** Added to every element. */
  plus: 0 | 1;
  /** The tensor in the file has `of` of these one after the other; `shape` is that of one. */
  stack?: { index: number; of: number };
}

const AS_STORED: Layout = { kind: 'as_stored' };

/** Every tensor in the order of use; a tied head is the embedding and not listed again. */
export function ggufTensors(architecture: Architecture, gguf: GgufArchitecture): GgufTensor[] {
  const { embedding, final, vocab, hidden } = architecture;
  return [
    plain('token_embd.weight', embedding.token, [vocab, hidden]),
    ...(embedding.positions
      ? [plain('position_embd.weight', embedding.positions.tensor, [embedding.positions.rows, hidden])]
      : []),
    ...norm('token_embd_norm', embedding.norm),
    ...plainBlocks(architecture).flatMap((block) => blockTensors(block, gguf)),
    ...norm('output_norm', final.norm),
    ...(final.tied ? [] : [plain('output.weight', final.head, [vocab, hidden])]),
  ];
}

function blockTensors(
  block: PlainBlock,
  { adjacentPairs, mlpNorm = 'ffn_norm' }: GgufArchitecture,
): GgufTensor[] {
  const { attention, mlp } = block;
  const name = (module: string) => `blk.${block.index}.${module}`;
  const fused = attention.projections.length === 1;
  const names = fused ? ['attn_qkv'] : ['attn_q', 'attn_k', 'attn_v'];
  const pairs = adjacentPairs && attention.rope ? pairsSideBySide(attention.headDim) : AS_STORED;
  const layouts = fused ? [partsInTurn(attention)] : [pairs, pairs, AS_STORED];
  return [
    ...norm(name('attn_norm'), block.attentionIn),
    ...attention.projections.flatMap((each, i) => linear(name(names[i]!), each, layouts[i]!)),
    ...norm(name('attn_q_norm'), attention.queryNorm),
    ...norm(name('attn_k_norm'), attention.keyNorm),
    ...linear(name('attn_output'), attention.output, AS_STORED),
    ...vector(name('attn_sinks.weight'), attention.sinks),
    ...norm(name('post_attention_norm'), block.attentionOut),
    ...norm(name(mlpNorm), block.mlpIn),
    ...(mlp.kind === 'mlp' ? mlpTensors(mlp, (part) => name(`ffn_${part}`)) : routedTensors(mlp, name)),
    ...norm(name('post_ffw_norm'), block.mlpOut),
  ];
}

function mlpTensors({ projections, output }: Mlp, name: (part: string) => string): GgufTensor[] {
  const inner = projections.length === 2 ? ['gate', 'up'] : ['up'];
  return [
    ...projections.flatMap((each, i) => linear(name(inner[i]!), each, AS_STORED)),
    ...linear(name('down'), output, AS_STORED),
  ];
}

function routedTensors({ experts, shared }: RoutedMlp, name: (module: string) => string): GgufTensor[] {
  const gate = shared?.factor;
  const isStacked = experts.experts[0]!.output.stack !== undefined;
  return [
    ...linear(name('ffn_gate_inp'), experts.router.scores, AS_STORED),
    ...(isStacked ? storedInOne(experts, name) : storedApart(experts, name)),
    ...(gate ? [plain(name('ffn_gate_inp_shexp.weight'), gate.weight, [gate.inputs])] : []),
    ...(shared ? mlpTensors(shared, (part) => name(`ffn_${part}_shexp`)) : []),
  ];
}

/** The same matrix of every expert one after the other: the order in which they have to come. */
function storedApart({ experts }: Experts, name: (module: string) => string): GgufTensor[] {
  const each = experts.map((mlp, index) =>
    mlpTensors(mlp, (part) => name(`ffn_${part}_exps`)).map((tensor) => ({
      ...tensor,
      stack: { index, of: experts.length },
    })),
  );
  return each[0]!.flatMap((_, part) => each.map((tensors) => tensors[part]!));
}

/**
 * All experts in one tensor, gate and up of each side by side: one half after the other, or, where inputs come first, in turn
 * (the only families that store them so are Granite's and GPT-OSS).
 */
function storedInOne({ experts }: Experts, name: (module: string) => string): GgufTensor[] {
  const of = experts.length;
  const { projections, output, inner } = experts[0]!;
  const [both] = projections as [Linear];
  const isTurned = both.storage === 'in_out';
  const halves = rowsFrom(2 * inner, (row) => {
    if (!isTurned) return row;
    return row < inner ? 2 * row : 2 * (row - inner) + 1;
  });
  const [gate, up, down] = ['gate', 'up', 'down'].map((part) => name(`ffn_${part}_exps`));
  const bias = (of: Linear) => (of.bias === undefined ? [] : [of.bias]);
  return [
    {
      ...plain(`${gate}.weight`, both.weight, [of, inner, both.inputs]),
      layout: isTurned ? { ...halves, kind: 'transposed' } : halves,
      second: `${up}.weight`,
    },
    ...bias(both).map((source) => ({
      ...plain(`${gate}.bias`, source, [of, inner]),
      ...{ layout: halves, second: `${up}.bias` },
    })),
    {
      ...plain(`${down}.weight`, output.weight, [of, output.outputs, inner]),
      ...(isTurned ? { layout: { kind: 'transposed', rows: output.outputs } satisfies Layout } : {}),
    },
    ...bias(output).map((source) => plain(`${down}.bias`, source, [of, output.outputs])),
  ];
}

function plain(name: string, source: string, shape: readonly number[]): GgufTensor {
  return { name, source, shape, layout: AS_STORED, plus: 0 };
}

/** One that is stored as it is. */
function vector(name: string, of: Vector | undefined): GgufTensor[] {
  return (of?.tensors ?? []).flatMap((part) => ('name' in part ? [plain(name, part.name, part.shape)] : []));
}

function norm(name: string, of: Norm | undefined): GgufTensor[] {
  if (!of) return [];
  const plus = of.kind.endsWith('plus_one') ? 1 : 0;
  return [
    // none of the listed types has norms without weights
    { ...plain(`${name}.weight`, String(of.weight), [of.width]), plus },
    ...(of.bias === undefined ? [] : [plain(`${name}.bias`, of.bias, [of.width])]),
  ];
}

function linear(
  name: string,
  { weight, bias, inputs, outputs, storage }: Linear,
  rows: Layout,
): GgufTensor[] {
  const layout: Layout = storage === 'in_out' ? { kind: 'transposed' } : rows;
  return [
    { ...plain(`${name}.weight`, weight, [outputs, inputs]), layout },
    ...(bias === undefined ? [] : [{ ...plain(`${name}.bias`, bias, [outputs]), layout: rows }]),
  ];
}

/** Rows (x₁, x₂) of every rotary pair one after the other: those of a head are stored in two halves. */
function pairsSideBySide(headDim: number): Layout {
  return rowsFrom(headDim, (row) => (row >> 1) + (row & 1) * (headDim / 2));
}

function rowsFrom(rows: number, from: (row: number) => number): Layout & { kind: 'rows' } {
  return { kind: 'rows', rows, from: Array.from({ length: rows }, (_, row) => from(row)) };
}

/** All queries, then all keys, then all values; a fused projection may store them head by head. */
function partsInTurn({ layout, heads, keyValueHeads, headDim }: Attention): Layout {
  if (layout.query.stride === headDim) return AS_STORED;
  const parts = [
    { ...layout.query, rows: heads * headDim },
    { ...layout.key, rows: keyValueHeads * headDim },
    { ...layout.value, rows: keyValueHeads * headDim },
  ];
  const from = parts.flatMap(({ begin, stride, rows }) =>
    Array.from({ length: rows }, (_, row) => begin + Math.floor(row / headDim) * stride + (row % headDim)),
  );
  return { kind: 'rows', rows: from.length, from };
}
