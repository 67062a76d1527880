/** Every kind of part by its name. */

import { GATE_CODE } from '../../backend/kernels/activation';
import { gatherRows, scatterRows } from '../../backend/kernels/rows';
import { lruScan } from '../../backend/kernels/sequence';
import type {
  Architecture,
  Block,
  Experts,
  Laurel,
  Lru,
  Part,
  PerLayer,
  Router,
  Shared,
  ShortConv,
} from '../../models/architecture';
import { unsupported } from '../../models/config-reader';
import { attention, placeRows } from './attention';
import { convolutionStates, convolve } from './convolution';
import { activatedRows, mlp } from './mlp';
import { type PartKind, project, projectOut, room, type StateShape } from './part';
import { recurrence } from './recurrence';

// y = Σ share_e(x) · expert_e(x) over the experts a router chooses. The scores come to the host, which chooses (mlp.ts); each
// expert then runs on the rows that took it.

const experts: PartKind<Experts> = {
  states: () => [],
  width: ({ experts: all, router }) =>
    router.scores.outputs + all[0]!.projections.reduce((sum, p) => sum + p.outputs, 0) + 4 * all[0]!.inner,
  async run({ router, experts: all }, passage, x) {
    const { operations: op, workspace, chunk, name, hidden, weights } = passage;
    const { queue } = op;
    const scored = router.norm ? room(passage, 'scored', hidden) : x;
    if (router.norm) op.norm(weights.norm(router.norm), passage.entered, scored, chunk.rows);
    const scores = await project(passage, [router.scores], scored, 'scores');
    const [bytes] = await queue.read([{ buffer: scores.buffer, byteLength: chunk.rows * scores.stride * 4 }]);
    const bias = router.bias && weights.values(router.bias);
    const scoresOfRows = new Float32Array(bytes!.buffer);
    passage.experts?.scores(scoresOfRows, chunk.rows, scores.stride);
    const taken = route(router, scoresOfRows, chunk.rows, scores.stride, bias);
    const branch = room(passage, `${name} branch`, hidden);
    queue.engine.clear(branch.buffer);
    const own = router.factors && weights.values(router.factors);
    for (const [e, { rows, shares }] of taken.entries()) {
      const count = rows.length;
      if (count === 0) continue;
      const picks = workspace.take('expert rows', count * 4);
      const factors = workspace.take('expert shares', count * 4);
      const inputs = { buffer: workspace.take('expert inputs', count * hidden * 4), stride: hidden };
      queue.write(picks, 0, Uint32Array.from(rows));
      let weighs = Float32Array.from(shares, (share) => share * (own?.[e] ?? 1));
      queue.write(factors, 0, weighs);
      queue.run(gatherRows, {
        params: { rows: count, width: hidden },
        buffers: { x: x.buffer, picks, y: inputs.buffer },
      });
      if (router.onInput) {
        op.gate({ buffer: factors, stride: 1 }, inputs, count, hidden, GATE_CODE.product, {
          broadcast: true,
        });
        weighs = new Float32Array(count).fill(1);
        queue.write(factors, 0, weighs);
      }
      const activated = await activatedRows(all[e]!, passage, inputs, count);
      const made = await project(passage, [all[e]!.output], activated, 'expert outputs', count);
      await passage.experts?.outputs(e, weighs, { ...made, rows: count, width: hidden, queue });
      queue.run(scatterRows, {
        params: { rows: count, width: hidden, x_stride: made.stride, y_stride: branch.stride },
        buffers: { x: made.buffer, picks, factors, y: branch.buffer },
      });
    }
    return branch;
  },
};

// y = W_out (gelu(W_y x) ⊙ lru(conv(W_x x))): the recurrent block of Griffin (De et al. 2024; transformers modeling_recurrent_gemma.py).

const scanState = ({ width }: Lru): StateShape => ({ name: 'scan', per: 'sequence', width });

const lru: PartKind<Lru> = {
  states: (part) => [...convolutionStates(part.conv), scanState(part)],
  width: ({ width }) => 4 * width,
  async run(part, passage, x) {
    const { operations: op, chunk, weights, pieces } = passage;
    const { width, block } = part;
    await passage.tap?.('in', part.projections, x);
    const projected = await project(passage, part.projections, x, 'projected');
    const convolved = convolve(part.conv, passage, projected, width);
    const y = room(passage, 'scanned', width);
    op.queue.run(
      lruScan,
      {
        params: {
          pieces: chunk.pieces.length,
          width,
          block,
          x_stride: convolved.stride,
          y_stride: y.stride,
        },
        buffers: {
          x: convolved.buffer,
          gates: weights.vector(part.gates),
          biases: weights.vector(part.biases),
          rates: weights.vector(part.rates),
          pieces_at: pieces,
          state: passage.state(scanState(part)),
          y: y.buffer,
        },
      },
      chunk.rows * width * block * 2,
    );
    op.gate(projected, y, chunk.rows, width, GATE_CODE.gelu_tanh);
    await passage.tap?.('out', [part.output], y);
    return projectOut(passage, part.output, y);
  },
};

// y = W · mlp(norm(attention(norm([x, e])))), e = what entered the first block: the transformer that layers of Zamba 2 have in
// common, each with a low-rank update of its own (Glorioso et al. 2024, arXiv 2411.15242; transformers modeling_zamba2.py).

const shared: PartKind<Shared> = {
  states: (part) => attention.states(part.attention),
  width: (part) =>
    2 * part.norm.width + part.output.outputs + attention.width(part.attention) + mlp.width(part.mlp),
  async run(part, passage, x) {
    const { operations: op, chunk, weights, hidden, embedded } = passage;
    const both = room(passage, 'stream and embedding', 2 * hidden);
    for (const [i, from] of [x, embedded!].entries()) {
      placeRows(passage, {
        from,
        layout: { begin: 0, stride: hidden },
        heads: 1,
        dims: hidden,
        to: both.buffer,
        width: hidden,
        begin: i * hidden,
        stride: both.stride,
        keepRows: true,
      });
    }
    const entered = room(passage, 'shared normed', 2 * hidden);
    op.norm(weights.norm(part.norm), both, entered, chunk.rows);
    const { onto: _, ...own } = passage;
    const inner = { ...own, name: 'shared' };
    const attended = await attention.run(part.attention, inner, entered);
    const thought = room(passage, 'shared mlp normed', hidden);
    op.norm(weights.norm(part.mlpIn), attended, thought, chunk.rows);
    const made = await mlp.run(part.mlp, inner, thought);
    return project(passage, [part.output], made, 'ahead');
  },
};

// y = W_out (C ⊙ conv(B ⊙ x)) with (B, C, x) = W_in · input: the short convolution of LFM2 (transformers modeling_lfm2.py).

const shortConv: PartKind<ShortConv> = {
  states: ({ conv }) => convolutionStates(conv),
  width: ({ conv }) => 5 * conv.channels,
  async run(part, passage, x) {
    const { operations: op, chunk } = passage;
    const { channels } = part.conv;
    await passage.tap?.('in', part.projections, x);
    const projected = await project(passage, part.projections, x, 'projected');
    const gated = room(passage, 'gated', channels);
    const columns = (begin: number) => ({ begin, stride: channels });
    placeRows(passage, {
      from: projected,
      layout: columns(2 * channels),
      heads: 1,
      dims: channels,
      to: gated.buffer,
      width: channels,
      keepRows: true,
    });
    op.gate(projected, gated, chunk.rows, channels, GATE_CODE.product);
    const convolved = convolve(part.conv, passage, gated, 0);
    op.gate(projected, convolved, chunk.rows, channels, GATE_CODE.product, { begin: channels });
    await passage.tap?.('out', [part.output], convolved);
    return projectOut(passage, part.output, convolved);
  },
};

// y = W_out (f(W_gate x) ⊙ e / √2), e = the layer's share of the token's embedding (Gemma 3n, Gemma 4).

const perLayer: PartKind<PerLayer> = {
  states: () => [],
  width: ({ output }) => 2 * output.inputs,
  async run(part, passage, x) {
    const { operations: op, chunk } = passage;
    const width = part.output.inputs;
    await passage.tap?.('in', part.projections, x);
    const gate = await project(passage, part.projections, x, 'inner');
    const activated = room(passage, 'activated', width);
    op.activate({ inner: width, gated: false, activation: part.activation }, gate, activated, chunk.rows);
    const shares = passage.perLayer!;
    op.gate(shares, activated, chunk.rows, width, GATE_CODE.product, { begin: part.layer * width });
    await passage.tap?.('out', [part.output], activated);
    return projectOut(passage, part.output, activated);
  },
};

// y = x + norm(W_right W_left x): Gemma 3n's learned augmented residual layer (transformers modeling_gemma3n.py).

const laurel: PartKind<Laurel> = {
  states: () => [],
  width: ({ output }) => output.inputs + 2 * output.outputs,
  async run(part, passage, x) {
    const { operations: op, chunk, name, weights, hidden } = passage;
    await passage.tap?.('in', part.projections, x);
    const narrow = await project(passage, part.projections, x, 'inner');
    await passage.tap?.('out', [part.output], narrow);
    const made = await project(passage, [part.output], narrow, 'laurel');
    const branch = room(passage, `${name} branch`, hidden);
    op.norm(weights.norm(part.norm), made, branch, chunk.rows);
    op.add(x.buffer, branch.buffer, 1, chunk.rows * hidden);
    return branch;
  },
};

const KINDS: { [K in Part['kind']]: PartKind<Extract<Part, { kind: K }>> } = {
  attention,
  mlp,
  experts,
  conv: shortConv,
  recurrence,
  lru,
  per_layer: perLayer,
  laurel,
  shared,
};

/** How a part runs. */
export function kindOf(part: Part): PartKind<Part> {
  return KINDS[part.kind] as PartKind<Part>;
}

/** States of earlier tokens that a block stores. */
export function blockStates(block: Block): StateShape[] {
  return partsOf(block).flatMap((part) => kindOf(part).states(part));
}

/** The parts of a block's branches, and those ahead of them. */
export function partsOf(block: Block): Part[] {
  const branches = [...block.steps.flatMap((step) => step.branches)];
  if (block.planes) branches.push(block.planes.share);
  return branches.flatMap(({ ahead, part }) => (ahead ? [ahead, part] : [part]));
}

/**
 * Refuses models whose layers read more than the stream: other streams, keys of other layers, the embedding again.
 * @throws AmalgamError `ArchitectureUnsupported`
 */
export function requireOneStream({ planes, blocks, modelType }: Architecture, what: string): void {
  const parts = blocks.flatMap(partsOf);
  const isOne = !parts.some(
    (part) => part.kind === 'shared' || (part.kind === 'attention' && part.keysOf !== undefined),
  );
  if (planes || !isOne)
    throw unsupported(`A ${modelType} cannot ${what}: its layers read more than one stream.`);
}

/** Inputs of layers besides the stream: the embedding again, and keys of these layers. */
export function sharedReads({ blocks }: Architecture): {
  keepsEmbedded: boolean;
  donors: ReadonlySet<number | undefined>;
} {
  const parts = blocks.flatMap(partsOf);
  return {
    keepsEmbedded: parts.some(({ kind }) => kind === 'shared'),
    donors: new Set(parts.flatMap((part) => (part.kind === 'attention' ? (part.keysOf ?? []) : []))),
  };
}

// Experts of a token, and their shares: the rules of the families' routers, in f64.

/** Rows that take an expert, and the share of each. */
interface Taken {
  rows: number[];
  shares: number[];
}

/**
 * For every expert the rows that take it.
 * @param scores [rows, stride]
 * @param bias added to the shares for the choice alone
 */
function route(
  router: Router,
  scores: Float32Array,
  rows: number,
  stride: number,
  bias?: Float32Array,
): Taken[] {
  const count = router.scores.outputs;
  const taken = Array.from({ length: count }, (): Taken => ({ rows: [], shares: [] }));
  for (let r = 0; r < rows; r++) {
    const row = Float64Array.from(scores.subarray(r * stride, r * stride + count));
    for (const [expert, share] of chooseOf(router, row, bias)) {
      taken[expert]!.rows.push(r);
      taken[expert]!.shares.push(share * router.scale);
    }
  }
  return taken;
}

function chooseOf(router: Router, scores: Float64Array, bias?: Float32Array): [number, number][] {
  if (router.by === 'sparsemixer') return sparseMixer(scores, router.chosen, router.margin!);
  const shares =
    router.by === 'softmax'
      ? softmax(scores)
      : router.by === 'sigmoid'
        ? scores.map((x) => 1 / (1 + Math.exp(-x)))
        : scores;
  const merit = bias ? shares.map((share, e) => share + bias[e]!) : shares;
  const chosen = largest(router.groups ? withinGroups(merit, router.groups) : merit, router.chosen);
  const own = Float64Array.from(chosen, (e) => shares[e]!);
  const weights = router.by === 'softmax_of_chosen' ? softmax(own) : own;
  const sum = weights.reduce((a, b) => a + b, 0);
  const { normalized } = router;
  const under = normalized ? Math.max(normalized.floor, sum + normalized.added) : 1;
  return chosen.map((e, i) => [e, weights[i]! / under]);
}

/** Indices of the largest, the first one where several are equal. */
function largest(values: Float64Array, count: number): number[] {
  return Array.from(values.keys())
    .sort((a, b) => values[b]! - values[a]! || a - b)
    .slice(0, count);
}

/** Merits with −∞ outside the best groups. */
function withinGroups(
  merit: Float64Array,
  { count, chosen, summed }: NonNullable<Router['groups']>,
): Float64Array {
  const size = merit.length / count;
  const worth = Float64Array.from({ length: count }, (_, g) => {
    const own = merit.slice(g * size, (g + 1) * size);
    return largest(own, summed).reduce((sum, e) => sum + own[e]!, 0);
  });
  const kept = new Set(largest(worth, chosen));
  return merit.map((value, e) => (kept.has(Math.floor(e / size)) ? value : Number.NEGATIVE_INFINITY));
}

/** One expert after the other: the largest score left, its share among those left that come within the margin of it. */
function sparseMixer(scores: Float64Array, count: number, margin: number): [number, number][] {
  const left = scores.slice();
  return Array.from({ length: count }, (): [number, number] => {
    const [best] = largest(left, 1) as [number];
    const top = left[best]!;
    const near = left.map((score, e) =>
      (top - score) / Math.max(Math.abs(scores[e]!), top) > 2 * margin ? Number.NEGATIVE_INFINITY : score,
    );
    const share = softmax(near)[best]!;
    left[best] = Number.NEGATIVE_INFINITY;
    return [best, share];
  });
}

function softmax(scores: Float64Array): Float64Array {
  const top = Math.max(...scores);
  const powers = scores.map((x) => Math.exp(x - top));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((x) => x / sum);
}
