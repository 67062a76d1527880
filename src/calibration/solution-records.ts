/** The Gram merge of linear layers, one after the other, as records in the browser's storage. */
import type { Backend, BackendBuffer } from '../backend/backend';
import { BLOCK, blockCount } from '../backend/kernel';
import { innerProducts } from '../backend/kernels/products';
import { selectMask } from '../backend/kernels/select';
import { moveValues } from '../backend/kernels/sums';
import { createQueue } from '../forward/queue';
import { type PreparedSolution, relativeWeights } from '../merge/tensor/prepared';
import type { ContributorReport } from '../reports/job';
import type { RecordHeader, StoredRecord } from '../store/masks';
import { formFor, type Gram, openGram } from './gram';
import { gramSolve, type SolveTerms } from './gram-merge';
import type { LinearTensor } from './linear-tensors';
import { countBits, flatBits, type SolveContext, transposeValues } from './selection-records';
import { loadFactors, loadTaskVectors, type TaskVectors } from './task-vectors';
import { factorNotes, trim, trimSettings } from './trimmed-change';

/** A merged change, f32, in the shape of the stored tensor. */
export interface SolutionHeader extends RecordHeader {
  contributors: ContributorReport[];
  cosine: number[][];
}

/** Storage key of the solution of a tensor. */
export function solutionName({ plan }: LinearTensor): string {
  const settings = plan.models.map((m) => {
    const { density, score, scope, compensation } = trimSettings(plan.parameters, m.parameters);
    return density >= 1 ? 1 : [density, score, scope, compensation].join(',');
  });
  return [plan.name, ...settings, ...weightsName(plan.models)].join('|');
}

/** Part of a storage key; none where all contributors count alike. */
export function weightsName(models: LinearTensor['plan']['models']): string[] {
  const weights = relativeWeights(models);
  return weights.every((weight) => weight === 1) ? [] : [`weights ${weights.join(',')}`];
}

/** The same of its factors. */
export function factorsName(tensor: LinearTensor): string {
  return `${solutionName(tensor)}|factors`;
}

/**
 * Input of solving one tensor, by contributor in the order of its plan: Gram matrices of their inputs; the same in the model
 * merged so far with the cross Gram matrices; or nothing but the task vectors.
 */
export type SolveFrom =
  | { match: 'inputs'; grams: readonly Gram[] }
  | ({ match: 'outputs'; grams: readonly Gram[] } & Omit<NonNullable<SolveTerms['disturbed']>, 'base'>)
  | { match: 'changes' };

/** Solves the factors of the LoRAs on one tensor, and stores them: [Σ ranks, inputs], sᵢAᵢGᵢ(ΣG)⁻¹ one below the other. */
export async function solveFactors(
  tensor: LinearTensor,
  grams: readonly Gram[],
  { engine, read, folder }: SolveContext,
): Promise<{ record: StoredRecord<SolutionHeader>; notes: string[] }> {
  const { taus, rows } = await loadFactors(tensor, engine, read);
  try {
    const weights = relativeWeights(tensor.plan.models);
    const solved = await gramSolve(engine, grams, taus, rows, tensor.inputs, { weights });
    const [bytes] = await engine.read([{ buffer: solved.tau, byteLength: rows * tensor.inputs * 4 }]);
    engine.free(solved.tau);
    const header = { name: factorsName(tensor), contributors: [], cosine: [] };
    const record = await folder.write<SolutionHeader>(header, [bytes!]);
    return {
      record,
      notes: factorNotes(tensor.plan.name, { gram: grams[0]!, results: [solved.factoring] }),
    };
  } finally {
    for (const tau of taus) engine.free(tau);
  }
}

/** Solves one tensor and stores its merged task vector. */
export async function solveTensor(
  tensor: LinearTensor,
  from: SolveFrom,
  context: SolveContext,
): Promise<{ record: StoredRecord<SolutionHeader>; notes: string[] }> {
  const { engine, work, read, folder } = context;
  const { plan, outputs: rows, inputs: cols } = tensor;
  const vectors = await loadTaskVectors(tensor, work, read, from.match === 'outputs');
  const trimmed: BackendBuffer[] = [];
  let own: readonly Gram[] = [];
  const notes: string[] = [];
  try {
    if (from.match === 'changes') own = vectors.taus.map((tau) => gramOfChange(engine, tau, rows, cols));
    const mine = from.match === 'changes' ? own : from.grams;
    const taus: BackendBuffer[] = [];
    const contributors: ContributorReport[] = [];
    for (const [i, m] of plan.models.entries()) {
      const norm = vectors.norms[i]!;
      const settings = trimSettings(plan.parameters, m.parameters);
      const whole = vectors.taus[i]!;
      if (settings.density >= 1) {
        taus.push(whole);
        contributors.push({ id: m.id, kept: plan.elements, threshold: 0, norm, keptNorm: norm });
        continue;
      }
      const found = await trimmedChange(tensor, whole, mine[i]!, settings, engine);
      trimmed.push(found.tau);
      taus.push(found.tau);
      notes.push(...found.notes);
      const keptNorm = await normOf(engine, found.tau, plan.elements);
      contributors.push({ id: m.id, kept: found.kept, threshold: 0, norm, keptNorm });
    }
    const terms = { ...termsOf(from, vectors), weights: relativeWeights(plan.models) };
    const solved = await gramSolve(engine, mine, taus, rows, cols, terms);
    const [bytes] = await engine.read([{ buffer: solved.tau, byteLength: plan.elements * 4 }]);
    engine.free(solved.tau);
    const tau = new Float32Array(bytes!.buffer);
    const values = tensor.storage === 'in_out' ? transposeValues(tau, rows, cols) : tau;
    const record = await folder.write<SolutionHeader>(
      {
        name: solutionName(tensor),
        contributors,
        cosine: vectors.cosine,
      },
      [new Uint8Array(values.buffer)],
    );
    notes.push(...factorNotes(plan.name, { gram: mine[0]!, results: [solved.factoring] }));
    return { record, notes };
  } finally {
    for (const gram of own) gram.close();
    for (const tau of trimmed) engine.free(tau);
    vectors.close();
  }
}

/** τᵀτ. */
function gramOfChange(engine: Backend, tau: BackendBuffer, rows: number, cols: number): Gram {
  const gram = openGram(engine, cols, formFor(engine, cols, 'full'));
  gram.add({ buffer: tau, rows, width: cols, stride: cols, pieces: [], queue: createQueue(engine) });
  return gram;
}

/** Gram matrix in place of the inputs': G = τᵀτ/‖τ‖² + mean(diag)·I, WUDI's loss in closed form (Cheng et al. 2025). */
function termsOf(from: SolveFrom, { norms, base }: TaskVectors): SolveTerms {
  if (from.match === 'changes') return { scales: norms.map((n) => (n > 0 ? 1 / n ** 2 : 0)), damping: 1 };
  if (from.match === 'outputs') {
    const { crosses, streams } = from;
    return { disturbed: { base: base!, crosses, ...(streams && { streams }) } };
  }
  return {};
}

async function trimmedChange(
  { plan, outputs: rows, inputs: cols }: LinearTensor,
  tau: BackendBuffer,
  gram: Parameters<typeof trim>[4],
  settings: Parameters<typeof trim>[5],
  engine: Backend,
): Promise<{ tau: BackendBuffer; kept: number; notes: string[] }> {
  const found = await trim(engine, tau, rows, cols, gram, settings);
  const [mask] = await engine.read([{ buffer: found.mask, byteLength: found.maskBytes }]);
  const kept = countBits(new Uint32Array(mask!.buffer));
  engine.free(found.mask);
  const notes = factorNotes(plan.name, { gram, results: [found.factoring] });
  if (found.tau) return { tau: found.tau, kept, notes };
  const flat = flatBits(new Uint32Array(mask!.buffer), cols, 0, plan.elements);
  return { tau: masked(engine, tau, flat, plan.elements), kept, notes };
}

/** A copy of τ with trimmed elements set to 0. */
function masked(
  engine: Backend,
  tau: BackendBuffer,
  flat: Uint32Array<ArrayBuffer>,
  elements: number,
): BackendBuffer {
  const values = engine.allocate(elements * 4, 'trimmed change');
  const mask = engine.allocate(flat.byteLength, 'mask');
  engine.write(mask, 0, new Uint8Array(flat.buffer));
  engine.run(moveValues, { params: { elements, from_word: 0, to_word: 0 }, buffers: { x: tau, y: values } });
  engine.run(selectMask, { params: { elements, slot: 0, first: 0 }, buffers: { mask, values } });
  engine.free(mask);
  return values;
}

/** ‖v‖₂ of f32 on the device. */
async function normOf(engine: Backend, values: BackendBuffer, elements: number): Promise<number> {
  const blocks = blockCount(elements);
  const sums = engine.allocate(blocks * 4, 'squares');
  engine.run(innerProducts, {
    params: { elements, slot: 0, stride: elements, count: 1, run: BLOCK },
    buffers: { values, sums },
  });
  const [bytes] = await engine.read([{ buffer: sums, byteLength: blocks * 4 }]);
  engine.free(sums);
  return Math.sqrt(new Float32Array(bytes!.buffer).reduce((a, b) => a + b, 0));
}

/** The record as a merge reads it. */
export function solutionOf(record: StoredRecord<SolutionHeader>): PreparedSolution {
  const { contributors, cosine } = record.header;
  return {
    contributors,
    cosine,
    async values(begin, end) {
      return new Float32Array((await record.read(0, begin * 4, end * 4)).buffer);
    },
  };
}
