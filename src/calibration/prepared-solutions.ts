/** The merged changes of a Gram merge, and the weights of the contributors in the rows of the embedding. */
import { counted } from '../formats/quantity';
import { withLambda } from '../merge/plan/plan-lambda';
import { openWorkspaceFor } from '../merge/tensor/computation';
import { type Prepared, type PreparedSolution, relativeWeights } from '../merge/tensor/prepared';
import { throwIfCanceled } from '../sources/cancellation';
import { openRecords, type RecordFolder, type RecordHeader, type StoredRecord } from '../store/masks';
import { tokenCounts } from './calibration';
import {
  computeMissing,
  findRecords,
  gramForm,
  type Job,
  type Keep,
  readings,
  sitesOf,
  taken,
  type Workspace,
  withReaders,
} from './calibration-work';
import { eachMatchedSite } from './layer-grams';
import { embeddingTensor, type LinearTensor } from './linear-tensors';
import { type Match, matchOf } from './plan-problems';
import {
  factorsName,
  type SolutionHeader,
  type SolveFrom,
  solutionName,
  solutionOf,
  solveFactors,
  solveTensor,
  weightsName,
} from './solution-records';

/** All contributors side by side: the merged changes, and how much each counts in the rows of the embedding. */
export async function prepareSolutions(job: Job): Promise<Prepared> {
  const match = matchOf(job.plan);
  if (match !== 'both') return solutionsBy(match, job);
  const inputs = await solutionsBy('inputs', job);
  return meanOf(inputs, await solutionsBy('stream', job));
}

/** Solutions halfway between two. */
function meanOf(one: Prepared, other: Prepared): Prepared {
  return {
    ...one,
    solution(tensor) {
      const [a, b] = [one.solution(tensor), other.solution(tensor)];
      if (!a || !b) return undefined;
      return {
        ...a,
        async values(begin, end) {
          const [values, more] = await Promise.all([a.values(begin, end), b.values(begin, end)]);
          return values.map((value, i) => (value + more[i]!) / 2);
        },
      };
    },
  };
}

async function solutionsBy(match: Exclude<Match, 'both'>, job: Job): Promise<Prepared> {
  const { contributors, base, engine, architecture, plan, read, size } = job;
  const solutions = new Map<string, PreparedSolution>();
  const embedding = embeddingTensor(architecture, plan);
  const byTokens = embedding?.parameters.embedding === 'tokens' && match !== 'changes';
  const form = gramForm(job);
  const models = contributors.map(({ model }, i) => [model, job.calibrations[i]]);
  const names = contributors.map(({ id }) => id).join(', ');
  const text = `${size.windows} × ${counted(size.length, 'token')}`;
  const [key, title] = {
    inputs: [['solution', 1, models, base, form, engine.kind], `Gram merge of ${names}, ${form} (${text})`],
    // what the merged model makes of a text depends on all of it, the embedding included
    outputs: [
      ['matched', 1, models, base, byTokens, fixedPart(job), engine.kind, ...weightsPart(job)],
      `Gram merge of ${names}, matching outputs (${text})`,
    ],
    stream: [
      ['stream', 1, models, base, byTokens, fixedPart(job), engine.kind, ...weightsPart(job)],
      `Gram merge of ${names}, matching outputs and the stream (${text})`,
    ],
    changes: [
      ['changes', 1, contributors.map(({ model }) => model), base, engine.kind],
      `Gram merge of ${names}, of their changes`,
    ],
  }[match] as [unknown[], string];
  const folder = await openRecords(JSON.stringify(key), title);
  const keep = (tensor: string, record: StoredRecord<SolutionHeader>) =>
    solutions.set(tensor, solutionOf(record));
  const weighted = byTokens ? embedding.name : undefined;
  let weights: Float64Array[] | undefined;
  const prepared: Prepared = {
    selection: () => undefined,
    solution: (tensor) => solutions.get(tensor),
    rowWeights: (tensor) => (tensor === weighted ? weights : undefined),
  };
  const nameOf = job.factored ? factorsName : solutionName;
  const missing = await findRecords(job, job.layers, folder, nameOf, keep);
  const solve = (tensor: LinearTensor, from: SolveFrom, work: Workspace) =>
    solveTensor(tensor, from, { engine, work, read, folder });
  const goesThrough = match === 'outputs' || match === 'stream';
  const weighRows = () => rowWeights(job, folder, relativeWeights(embedding!.models));
  if (goesThrough && byTokens) weights = await weighRows();
  if (match === 'inputs') {
    const all = contributors.map((_, i) => i);
    await computeMissing(job, all, missing, keep, (tensor, bySite, work) => {
      const grams = bySite.map((of) => of.get(tensor.site)!);
      if (job.factored) return solveFactors(tensor, grams, { engine, work, read, folder });
      return solve(tensor, { match, grams }, work);
    });
  } else if (goesThrough) await matchMissing(job, missing, prepared, keep, solve, match === 'stream');
  else await solveChanges(job, missing, keep, solve);
  if (byTokens) weights ??= await weighRows();
  return prepared;
}

/** Names of the copied tensors: not solved for, but part of the merged model that is run. */
function fixedPart({ plan }: Job): string[] {
  return plan.tensors.flatMap(({ name, copy }) => (copy ? [`${name} ${copy.folder}`] : []));
}

/** Tensors in which some contributors count more than others, with their weights. */
function weightsPart({ plan }: Job): string[] {
  return plan.tensors.flatMap(({ name, models }) => weightsName(models).map((of) => `${name} ${of}`));
}

type Solve = (tensor: LinearTensor, from: SolveFrom, work: Workspace) => ReturnType<typeof solveTensor>;

/** Layer by layer, each with the inputs that it has in the model merged so far. */
async function matchMissing(
  job: Job,
  missing: readonly (readonly LinearTensor[])[],
  prepared: Prepared,
  keep: Keep<SolutionHeader>,
  solve: Solve,
  streams: boolean,
): Promise<void> {
  const { contributors, engine, progress, signal, plan } = job;
  const all = contributors.map((_, i) => i);
  await withReaders(job, all, missing, async (passages, work, rows) => {
    // λ scales what was solved: the layers are matched with all of it
    const merged = await job.openMerge(withLambda(plan, 1), prepared, rows * all.length);
    try {
      progress?.begin('calibrating', missing.length + 1);
      await eachMatchedSite(
        {
          engine,
          passages,
          merged: merged.runner,
          streams,
          wanted: (layer) => sitesOf(missing[layer]!),
          ...(signal && { signal }),
          onStep: (layer) => progress?.advance(1, layer < 0 ? 'embedding' : `layer ${layer}`),
        },
        async (layer, site, matched, share) => {
          const from: SolveFrom = {
            match: 'outputs',
            grams: matched.map(({ gram }) => gram),
            crosses: matched.map(({ cross }) => cross),
            streams: { crosses: matched.flatMap(({ stream }) => stream ?? []), share },
          };
          for (const tensor of missing[layer]!) {
            if (tensor.site === site) taken(job, tensor, await solve(tensor, from, work), keep);
          }
        },
      );
    } finally {
      merged.close();
    }
  });
}

/** Solutions from the task vectors alone, without running a model. */
async function solveChanges(
  job: Job,
  missing: readonly (readonly LinearTensor[])[],
  keep: Keep<SolutionHeader>,
  solve: Solve,
): Promise<void> {
  const { engine, progress, signal } = job;
  const tensors = missing.flat();
  if (tensors.length === 0) return;
  const work = openWorkspaceFor(
    tensors.map(({ plan }) => plan),
    job.methods,
    engine,
  );
  try {
    progress?.begin('calibrating', missing.length);
    for (const [layer, here] of missing.entries()) {
      for (const tensor of here) {
        throwIfCanceled(signal);
        taken(job, tensor, await solve(tensor, { match: 'changes' }, work), keep);
      }
      progress?.advance(1, `layer ${layer}`);
    }
  } finally {
    work.close();
  }
}

const COUNTS = 'token counts';

/** cᵢ(token) = wᵢ(nᵢ(token) + 1) / Σ, from how often each contributor's text used it. Stored, so that no text is needed. */
async function rowWeights(
  job: Job,
  folder: RecordFolder,
  weights: readonly number[],
): Promise<Float64Array[]> {
  const { contributors, architecture } = job;
  const { vocab } = architecture;
  const found = await folder.find<RecordHeader>(COUNTS);
  let counts: Float64Array[];
  if (found) {
    const bytes = await found.read(0, 0, found.header.sections[0]!);
    const all = new Float64Array(bytes.buffer);
    counts = contributors.map((_, i) => all.subarray(i * vocab, (i + 1) * vocab));
  } else {
    const sequences = await readings(
      job,
      contributors.map((_, i) => i),
    );
    counts = sequences.map((mine) => tokenCounts(mine, vocab));
    const all = new Float64Array(counts.length * vocab);
    for (const [i, mine] of counts.entries()) all.set(mine, i * vocab);
    await folder.write<RecordHeader>({ name: COUNTS }, [new Uint8Array(all.buffer)]);
  }
  const sums = Float64Array.from({ length: vocab }, (_, token) =>
    counts.reduce((sum, mine, i) => sum + weights[i]! * (mine[token]! + 1), 0),
  );
  return counts.map((mine, i) => mine.map((n, token) => (weights[i]! * (n + 1)) / sums[token]!));
}
