/**
 * The forward pass of attention and MLP blocks in f64, written as plainly as it can be: the truth the kernels are tested
 * against. Reads the same
 * `Architecture` as the runner and shares no arithmetic with it but erf. Far too slow for anything but tests.
 */
import { erf } from '../backend/special';
import type { Architecture, Attention, Block, Linear, Mlp, Norm, Part, Rope } from '../models/architecture';
import { longAfter, ropeTables } from '../models/rope';

/** A row per position. */
type Rows = Float64Array<ArrayBuffer>[];

/** The values of a tensor by the architecture's name for it, widened to f64. */
export type Weights = (name: string) => Float64Array<ArrayBuffer>;

export interface OracleOutput {
  /** The stream entering block 0, and after each block: [blocks + 1][position][hidden]. */
  residuals: Rows[];
  /** [position][vocab]. */
  logits: Rows;
  /** Input rows of every linear layer, by the name of its weight. */
  inputs: Map<string, Rows>;
}

/** Deviations that no architecture expresses: for the proof that the goldens would catch them. */
export interface OracleFaults {
  /** Rotate pairs (2i, 2i + 1) instead of halves. */
  interleavedRope?: boolean;
  /** Query head h reads key head h mod n instead of ⌊h / group⌋. */
  moduloHeads?: boolean;
  normAfterRope?: boolean;
  /** Heads normed one by one where the norm runs over the whole projection. */
  normPerHead?: boolean;
}

/**
 * What takes the place of an MLP.
 * @param mlp the MLP that stands there, with weights of the same names from elsewhere
 */
type InPlaceOfMlp = (layer: number, x: Rows, mlp: (weights: Weights) => Rows) => Rows;

/** Runs the ids [positions] at positions 0, 1, …; no cache, no batch. */
export function runOracle(
  architecture: Architecture,
  weights: Weights,
  ids: ArrayLike<number>,
  faults: OracleFaults = {},
  inPlace: InPlaceOfMlp = (_, __, mlp) => mlp(weights),
): OracleOutput {
  const inputs = new Map<string, Rows>();
  const apply = (linear: Linear, x: Rows, from = weights) => {
    inputs.set(linear.weight, x);
    return applyLinear(linear, x, from);
  };
  let x = embed(architecture, weights, ids);
  const residuals = [x];
  for (const block of architecture.blocks) {
    x = runBlock(block, x, weights, apply, faults, inPlace);
    residuals.push(x);
  }
  return { residuals, logits: project(architecture, x, weights), inputs };
}

function embed({ embedding, hidden }: Architecture, weights: Weights, ids: ArrayLike<number>): Rows {
  const table = weights(embedding.token);
  const { width, positions } = embedding;
  let x = Array.from(ids, (id) => table.slice(id * width, (id + 1) * width).map((v) => v * embedding.scale));
  if (embedding.projection) x = applyLinear(embedding.projection, x, weights);
  if (positions) {
    const rows = weights(positions.tensor);
    x = x.map((row, p) => row.map((v, i) => v + rows[(p + positions.offset) * hidden + i]!));
  }
  return embedding.norm ? applyNorm(embedding.norm, x, weights) : x;
}

function project({ final, vocab }: Architecture, x: Rows, weights: Weights): Rows {
  let y = final.norm ? applyNorm(final.norm, x, weights) : x;
  if (final.projection) y = applyLinear(final.projection, y, weights);
  const head: Linear = { weight: final.head, inputs: y[0]!.length, outputs: vocab, storage: 'out_in' };
  return applyLinear(head, y, weights).map((row) => row.map((v) => cap(v / final.divisor, final.softcap)));
}

function runBlock(
  block: Block,
  x: Rows,
  weights: Weights,
  apply: (linear: Linear, x: Rows, from?: Weights) => Rows,
  faults: OracleFaults,
  inPlace: InPlaceOfMlp,
): Rows {
  const normed = (norm: Norm | undefined, rows: Rows) => (norm ? applyNorm(norm, rows, weights) : rows);
  const attend = (attention: Attention, rows: Rows) => {
    const projected = sideBySide(attention.projections.map((p) => apply(p, rows)));
    return apply(attention.output, mix(attention, projected, weights, faults));
  };
  const think = (mlp: Mlp, rows: Rows, from: Weights) => {
    const projected = sideBySide(mlp.projections.map((p) => apply(p, rows, from)));
    const f = activations[mlp.activation as keyof typeof activations];
    const hidden = projected.map((row) =>
      Float64Array.from({ length: mlp.inner }, (_, i) =>
        mlp.gated ? f(row[i]!) * row[mlp.inner + i]! : f(row[i]!),
      ),
    );
    return apply(mlp.output, hidden, from);
  };
  const run = (part: Part, rows: Rows) =>
    part.kind === 'attention'
      ? attend(part, rows)
      : inPlace(block.index, rows, (from) => think(part as Mlp, rows, from));
  let stream = x;
  for (const { branches, after } of block.steps) {
    const made = branches.map((b) => normed(b.out, run(b.part, normed(b.in, stream))));
    for (const [k, { scale }] of branches.entries()) {
      stream = stream.map((row, p) => row.map((v, i) => v + scale * made[k]![p]![i]!));
    }
    stream = normed(after, stream);
  }
  return stream;
}

function mix(attention: Attention, projected: Rows, weights: Weights, faults: OracleFaults): Rows {
  const { heads, keyValueHeads, headDim, layout, scale, softcap, alibi, window, chunk } = attention;
  const split = (part: 'query' | 'key' | 'value', count: number): Rows[] =>
    projected.map((row) =>
      Array.from({ length: count }, (_, h) => {
        const begin = layout[part].begin + h * layout[part].stride;
        return row.slice(begin, begin + headDim);
      }),
    );
  const position = (part: Rows[], norm: Norm | undefined): Rows[] => {
    const rotate = (rows: Rows[]) => (attention.rope ? applyRope(attention.rope, rows, faults) : rows);
    const normHeads = (rows: Rows[]) =>
      norm ? rows.map((r) => normOfHeads(norm, r, weights, faults)) : rows;
    return faults.normAfterRope ? normHeads(rotate(part)) : rotate(normHeads(part));
  };
  const queries = position(split('query', heads), attention.queryNorm);
  const keys = position(split('key', keyValueHeads), attention.keyNorm);
  const values = split('value', keyValueHeads);
  return queries.map((row, p) => {
    const first = chunk ? p - (p % chunk) : window === undefined ? 0 : Math.max(0, p - window + 1);
    const out = new Float64Array(heads * headDim);
    for (const [h, query] of row.entries()) {
      const kv = faults.moduloHeads ? h % keyValueHeads : Math.floor(h / (heads / keyValueHeads));
      const scores = Array.from({ length: p - first + 1 }, (_, j) => {
        const s = cap(dot(query, keys[first + j]![kv]!) * scale, softcap);
        return alibi ? s + alibi[h]! * (first + j) : s;
      });
      const top = Math.max(...scores);
      const shares = scores.map((s) => Math.exp(s - top));
      const total = shares.reduce((a, b) => a + b, 0);
      for (const [j, share] of shares.entries()) {
        for (let i = 0; i < headDim; i++)
          out[h * headDim + i]! += (share / total) * values[first + j]![kv]![i]!;
      }
    }
    return out;
  });
}

/** A norm of one head's width runs over each head; any other over all heads of a position at once. */
function normOfHeads(norm: Norm, heads: Rows, weights: Weights, faults: OracleFaults): Rows {
  const headDim = heads[0]!.length;
  if (norm.width === headDim) return applyNorm(norm, heads, weights);
  if (faults.normPerHead) {
    return heads.map((head, h) => {
      const part = (name: string) => weights(name).slice(h * headDim, (h + 1) * headDim);
      return applyNorm({ ...norm, width: headDim }, [head], part)[0]!;
    });
  }
  const whole = new Float64Array(norm.width);
  heads.forEach((head, h) => void whole.set(head, h * headDim));
  const [row] = applyNorm(norm, [whole], weights);
  return heads.map((_, h) => row!.slice(h * headDim, (h + 1) * headDim));
}

function applyRope(rope: Rope, rows: Rows[], faults: OracleFaults): Rows[] {
  const { cos, sin } = ropeTables(rope, 0, rows.length, rows.length > (longAfter(rope) ?? Infinity));
  const half = rope.dims / 2;
  return rows.map((heads, p) =>
    heads.map((head) => {
      const out = head.slice();
      for (let i = 0; i < half; i++) {
        const [a, b] = faults.interleavedRope ? [2 * i, 2 * i + 1] : [i, i + half];
        const [c, s] = [cos[p * half + i]!, sin[p * half + i]!];
        out[a] = head[a]! * c - head[b]! * s;
        out[b] = head[b]! * c + head[a]! * s;
      }
      return out;
    }),
  );
}

function applyNorm(norm: Norm, x: Rows, weights: Weights): Rows {
  const w = typeof norm.weight === 'number' ? x[0]!.map(() => norm.weight as number) : weights(norm.weight);
  const b = norm.bias === undefined ? undefined : weights(norm.bias);
  return x.map((row) => {
    const mean = norm.kind.startsWith('layer') ? row.reduce((a, v) => a + v, 0) / row.length : 0;
    const variance = row.reduce((a, v) => a + (v - mean) ** 2, 0) / row.length;
    const inverse = 1 / Math.sqrt(variance + norm.epsilon);
    const shift = norm.kind.endsWith('plus_one') ? 1 : 0;
    return row.map((v, i) => (v - mean) * inverse * (w[i]! + shift) + (b?.[i] ?? 0));
  });
}

function applyLinear({ weight, bias, inputs, outputs, storage }: Linear, x: Rows, weights: Weights): Rows {
  const w = weights(weight);
  const b = bias === undefined ? undefined : weights(bias);
  const [byOutput, byInput] = storage === 'out_in' ? [inputs, 1] : [1, outputs];
  return x.map((row) => {
    const y = new Float64Array(outputs);
    for (let o = 0; o < outputs; o++) {
      let sum = b?.[o] ?? 0;
      for (let i = 0; i < inputs; i++) sum += row[i]! * w[o * byOutput + i * byInput]!;
      y[o] = sum;
    }
    return y;
  });
}

function sideBySide(parts: Rows[]): Rows {
  const widths = parts.map((rows) => rows[0]!.length);
  return parts[0]!.map((_, p) => {
    const row = new Float64Array(widths.reduce((a, b) => a + b, 0));
    let at = 0;
    for (const part of parts) {
      row.set(part[p]!, at);
      at += part[p]!.length;
    }
    return row;
  });
}

function dot(a: Float64Array, b: Float64Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
  return sum;
}

function cap(x: number, limit: number | undefined): number {
  return limit === undefined ? x : limit * Math.tanh(x / limit);
}

function geluTanh(x: number, root: number): number {
  return 0.5 * x * (1 + Math.tanh(root * (x + 0.044715 * x ** 3)));
}

const activations = {
  silu: (x: number) => x / (1 + Math.exp(-x)),
  gelu_erf: (x: number) => 0.5 * x * (1 + erf(x * Math.SQRT1_2)),
  gelu_tanh: (x: number) => geluTanh(x, Math.sqrt(2 / Math.PI)),
  gelu_bloom: (x: number) => geluTanh(x, 0.79788456),
  relu: (x: number) => Math.max(0, x),
};
