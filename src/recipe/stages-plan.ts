/** The plans of all stages of a recipe, made from headers alone: what a stage will write is known from its plan. */
import { AmalgamError } from '../errors';
import type { Recipe } from '../formats/recipe';
import { buildShardIndex, SHARD_INDEX } from '../formats/shard-index';
import type { OpenModels } from '../host/models';
import { type OpenModel, openModel } from '../inputs/opened-model';
import type { MergeMethod } from '../merge/method';
import type { Plan } from '../merge/plan/plan';
import { planReport } from '../merge/plan/plan-report';
import { makePlan } from '../merge/plan/recipe-plan';
import type { PlanProblem, PlanReport } from '../reports/plan';
import { bufferSource } from '../sources/byte-source';
import { findFile, type ModelFile, type ModelFolder } from '../sources/model-folder';
import { indexedFiles, type ShardPlan } from '../write/shard-plan';

interface StagedPlan {
  stages: { name: string; plan: Plan }[];
  /** The plan of the result; undefined where a stage it needs has errors. */
  result?: Plan;
}

/**
 * Plans every stage in order, and the result.
 * @param cached bytes of Hub files that are here already, by sha256
 */
export async function planStages(
  recipe: Recipe,
  models: OpenModels,
  methods: ReadonlyMap<string, MergeMethod>,
  cached: ReadonlyMap<string, number>,
): Promise<StagedPlan> {
  const staged = stagedModels(models);
  const open = (path: string) => staged.open(path);
  const known = new Map(cached);
  const stages: StagedPlan['stages'] = [];
  for (const stage of recipe.stages ?? []) {
    const made = await makePlan(stage, open, methods, known);
    const plan = stage.amalgam.ggufOnly ? { ...made, problems: [...made.problems, GGUF_STAGE] } : made;
    stages.push({ name: stage.name, plan });
    if (plan.problems.some((problem) => problem.severity === 'error')) return { stages };
    // what one stage downloads is there for the next
    for (const { folder, file } of plan.inputs) {
      const { sha256, byteLength } = staged.file(folder, file).file;
      if (sha256 !== undefined) known.set(sha256, byteLength);
    }
    const output = plannedOutput(stage.name, plan, (folder, path) => staged.file(folder, path).file);
    staged.addStage(stage.name, await openModel(output, stage.name));
  }
  return { stages, result: await makePlan(recipe, open, methods, known) };
}

/** Problem of a stage written as GGUF alone: the next stage reads safetensors. */
const GGUF_STAGE: PlanProblem = {
  severity: 'error',
  code: 'GgufUnsupported',
  message: 'A stage cannot be written as GGUF alone: the next one reads its safetensors.',
  remedy: 'Leave out gguf_only there; the result may have it.',
};

/** A staged plan as the studio and the command show it: the result, the sums over all stages, every stage's problems. */
export function stagedReport({ stages, result }: StagedPlan): PlanReport {
  const all = stages.map(({ name, plan }) => ({ name, report: planReport(plan) }));
  const last = result
    ? planReport(result)
    : { ...all.at(-1)!.report, problems: [], tensors: [], outputFiles: [] };
  const every = [...all.map(({ report }) => report), ...(result ? [last] : [])];
  const sum = (of: (report: PlanReport) => number) => every.reduce((total, report) => total + of(report), 0);
  const named = all.flatMap(({ name, report }) => report.problems.map((problem) => inStage(name, problem)));
  return {
    ...last,
    problems: [...named, ...last.problems],
    clean: every.every((report) => report.clean),
    bytesToDownload: sum((report) => report.bytesToDownload),
    bytesToRead: sum((report) => report.bytesToRead),
    bytesToWrite: sum((report) => report.bytesToWrite),
    peakBytes: Math.max(...every.map((report) => report.peakBytes)),
    stages: all,
  };
}

function inStage(name: string, problem: PlanProblem): PlanProblem {
  return { ...problem, message: `In ${name}: ${problem.message}` };
}

/** The opened models, with the outputs of stages among them under the names of the stages. */
export function stagedModels(models: OpenModels) {
  const outputs = new Map<string, OpenModel>();
  return {
    ...models,
    /** Makes the output of a stage a model by the name of the stage. */
    addStage(name: string, output: OpenModel): void {
      outputs.set(name, output);
    },
    async open(path: string) {
      return outputs.get(path) ?? models.open(path);
    },
    file(folder: string, path: string) {
      const output = outputs.get(folder);
      if (!output) return models.file(folder, path);
      const file = findFile(output.folder, path);
      if (file) return { folder: output.folder, file };
      throw new AmalgamError('NotFound', `The stage ${folder} wrote no ${path}.`, 'Please report this.');
    },
  };
}

/**
 * The output of a clean plan as a folder that can be opened before it exists, to plan what is merged from it: headers
 * and small files are known, weights are not. The headers lack the hashes of the inputs, so the offsets of the weights
 * are not yet those of the real files.
 *
 * @param name of the folder
 * @param file a file of an opened model, for the small files that are copied
 */
export function plannedOutput(
  name: string,
  plan: Plan,
  file: (folder: string, path: string) => ModelFile,
): ModelFolder {
  const shards = plan.shards.map((shard) => plannedShard(name, shard));
  const small = plan.extras.map(({ path, content }): ModelFile => {
    if ('text' in content) return textFile(path, content.text);
    return { ...file(content.folder, content.file), path };
  });
  const indexed = plan.places ? [] : indexedFiles(plan.shards);
  const entries = indexed.flatMap((s) => s.tensors.map((t) => [t.name, s.file] as const));
  const index =
    indexed.length > 0 ? [textFile(SHARD_INDEX, buildShardIndex(entries, plan.bytesToWrite))] : [];
  return { path: name, origin: { kind: 'local' }, files: [...shards, ...small, ...index] };
}

function plannedShard(name: string, { file, header, byteLength }: ShardPlan): ModelFile {
  const known = bufferSource(header, `${name}/${file}`);
  return {
    path: file,
    byteLength,
    open: () => ({
      byteLength,
      async read(begin, end, signal) {
        if (begin >= header.length) throw notYet(name);
        const bytes = new Uint8Array(end - begin);
        bytes.set(await known.read(begin, Math.min(end, header.length), signal));
        return bytes;
      },
    }),
  };
}

function textFile(path: string, text: string): ModelFile {
  const bytes = new TextEncoder().encode(text);
  return { path, byteLength: bytes.length, open: () => bufferSource(bytes, path) };
}

function notYet(name: string): AmalgamError {
  return new AmalgamError(
    'Internal',
    `The weights of ${name} were asked for before they were merged.`,
    'Please report this.',
  );
}
