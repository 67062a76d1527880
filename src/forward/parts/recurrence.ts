/**
 * A matrix state per head that runs along the sequence, h ← a ∘ h + u Bᵀ, y = h C + D x (shaders/sequence/state-scan.wgsl), with what
 * stands around it: a convolution ahead, a gate and a norm behind. Mamba (Gu and Dao 2023), Mamba-2 (Dao and Gu 2024), the
 * gated delta rule (Yang et al. 2024), decaying attention (Qin et al. 2024).
 */
import { GATE_CODE } from '../../backend/kernels/activation';
import { SCAN_CODE, stateScan } from '../../backend/kernels/sequence';
import type { Columns, Norm, Recurrence } from '../../models/architecture';
import type { RowBuffer } from '../operations';
import { placeRows } from './attention';
import { convolutionStates, convolve } from './convolution';
import { type PartKind, type Passage, project, projectOut, room, type StateShape } from './part';

const scanState = ({ heads, dim, states }: Recurrence): StateShape => ({
  name: 'scan',
  per: 'sequence',
  width: heads * dim * states,
});

export const recurrence: PartKind<Recurrence> = {
  states: (part) => [...convolutionStates(part.conv), scanState(part)],
  width: ({ projections, conv, heads, dim }) =>
    projections.reduce((sum, p) => sum + p.outputs, 0) + 3 * conv.channels + 4 * heads * dim,
  async run(part, passage, x) {
    const { operations: op, chunk, weights } = passage;
    await passage.tap?.('in', part.projections, x);
    const projected = await project(passage, part.projections, x, 'projected');
    if (part.factors) {
      const factors = { buffer: weights.vector(part.factors), stride: 0 };
      op.gate(factors, projected, chunk.rows, projected.stride, GATE_CODE.product, { oneRow: true });
    }
    const row = side(passage, projected, part.row, 'gathered');
    const convolved = convolve(part.conv, passage, row.rows, row.begin);
    const y = room(passage, 'scanned', part.heads * part.dim);
    await scan(part, passage, projected, convolved, y);
    const out = finish(part, passage, projected, y);
    await passage.tap?.('out', [part.output], out);
    return projectOut(passage, part.output, out);
  },
};

/** Columns side by side: where they stand if they do, else copied there. */
function side(
  passage: Passage,
  from: RowBuffer,
  columns: readonly Columns[],
  name: string,
): { rows: RowBuffer; begin: number } {
  const [only, ...more] = columns;
  if (!only) return { rows: from, begin: 0 };
  if (more.length === 0 && only.heads === 1) return { rows: from, begin: only.begin };
  const width = columns.reduce((sum, { heads, dims }) => sum + heads * dims, 0);
  const rows = room(passage, name, width);
  let begin = 0;
  for (const { heads, dims, ...layout } of columns) {
    placeRows(passage, {
      from,
      layout,
      heads,
      dims,
      to: rows.buffer,
      width: dims,
      begin,
      stride: rows.stride,
      keepRows: true,
    });
    begin += heads * dims;
  }
  return { rows, begin: 0 };
}

async function scan(
  part: Recurrence,
  passage: Passage,
  projected: RowBuffer,
  convolved: RowBuffer,
  y: RowBuffer,
): Promise<void> {
  const { operations: op, chunk, weights, pieces } = passage;
  const { heads, dim, states, share, rule } = part;
  const inputs = part.narrow
    ? await narrowed(part, passage, convolved)
    : {
        ...(part.unit ? { bc: unitRows(part.unit, part, passage, convolved) } : { bc: convolved }),
        b: part.b,
        c: part.c,
        times: side(passage, projected, part.times, 'times'),
      };
  op.queue.run(
    stateScan,
    {
      params: {
        pieces: chunk.pieces.length,
        heads,
        dim,
        states,
        heads_per_group: share,
        decays: part.decays,
        kind: SCAN_CODE[rule],
        x_begin: part.x,
        x_stride: convolved.stride,
        b_begin: inputs.b,
        c_begin: inputs.c,
        bc_stride: inputs.bc.stride,
        t_begin: inputs.times.begin,
        beta_begin: inputs.times.begin + heads,
        t_stride: inputs.times.rows.stride,
        y_stride: y.stride,
        low: part.low,
        high: part.high,
        beta_scale: part.betaScale,
        y_scale: part.scale,
      },
      buffers: {
        x: convolved.buffer,
        bc: inputs.bc.buffer,
        t: inputs.times.rows.buffer,
        constants: weights.vector(part.constants),
        pieces_at: pieces,
        state: passage.state(scanState(part)),
        y: y.buffer,
      },
    },
    2 * chunk.rows * heads * dim * states,
  );
}

/** b and c, which begin the convolved row, brought to length 1. */
function unitRows(unit: Norm, part: Recurrence, passage: Passage, convolved: RowBuffer): RowBuffer {
  const { operations: op, weights, chunk } = passage;
  const groups = (2 * part.heads) / part.share;
  const rows = room(passage, 'unit', groups * part.states);
  op.norm(weights.norm(unit), convolved, rows, chunk.rows, { begin: 0, groups, stride: part.states });
  return rows;
}

/** Mamba: (step, b, c) = W · x, each normed where the family does; the step goes on through another layer. */
async function narrowed(part: Recurrence, passage: Passage, convolved: RowBuffer) {
  const { operations: op, weights, chunk } = passage;
  const { project: into, expand, states: norms } = part.narrow!;
  const row = await project(passage, [into], convolved, 'narrow');
  const widths = [expand.inputs, part.states, part.states];
  const parts = widths.map((width, i): { rows: RowBuffer; begin: number } => {
    const begin = widths.slice(0, i).reduce((a, b) => a + b, 0);
    const norm = norms[i];
    if (!norm) return { rows: row, begin };
    const rows = room(passage, `narrow ${i}`, width);
    op.norm(weights.norm(norm), row, rows, chunk.rows, { begin, groups: 1, stride: 0 });
    return { rows, begin: 0 };
  });
  const [step, b, c] = parts as [(typeof parts)[0], (typeof parts)[0], (typeof parts)[0]];
  const times = { rows: await project(passage, [expand], step.rows, 'times'), begin: 0 };
  if (b.rows === c.rows) return { bc: b.rows, b: b.begin, c: c.begin, times };
  const both = room(passage, 'b and c', 2 * part.states);
  for (const [i, { rows, begin }] of [b, c].entries()) {
    placeRows(passage, {
      from: rows,
      layout: { begin, stride: part.states },
      heads: 1,
      dims: part.states,
      to: both.buffer,
      width: part.states,
      begin: i * part.states,
      stride: both.stride,
      keepRows: true,
    });
  }
  return { bc: both, b: 0, c: part.states, times };
}

/** Gate and norm, in the family's order. */
function finish(part: Recurrence, passage: Passage, projected: RowBuffer, y: RowBuffer): RowBuffer {
  const { operations: op, chunk, weights } = passage;
  const width = part.heads * part.dim;
  const { columns, by, first } = part.gate;
  const gate = (rows: RowBuffer) =>
    op.gate(projected, rows, chunk.rows, width, GATE_CODE[by], {
      begin: columns.begin,
      group: columns.dims,
      groupStride: columns.stride,
    });
  if (first) gate(y);
  if (!part.norm) {
    if (!first) gate(y);
    return y;
  }
  const { norm, weight } = part.norm;
  const out = room(passage, 'scan normed', width);
  op.norm(weights.norm(norm), y, out, chunk.rows, {
    begin: 0,
    groups: width / norm.width,
    stride: norm.width,
  });
  if (weight) {
    op.gate({ buffer: weights.vector(weight), stride: 0 }, out, chunk.rows, width, GATE_CODE.product, {
      oneRow: true,
    });
  }
  if (!first) gate(out);
  return out;
}
