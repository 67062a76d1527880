/** Work ahead of a merge on the typed-array engine in Node: calibration, importance, Gram merge, λ, perplexity. */
import { createHash } from 'node:crypto';
import { createCpuBackend } from '../src/backend/cpu/cpu-backend';
import type { CalibrationSource, Contributor } from '../src/calibration/calibration';
import { prepareImportance } from '../src/calibration/job';
import { findLambda } from '../src/calibration/lambda-choice';
import { calibrationChoice } from '../src/calibration/plan-problems';
import { DEFAULT_PROTOCOL, type EvaluateProtocol, evaluate } from '../src/evaluate/perplexity';
import { openPlannedWeights } from '../src/evaluate/planned-weights';
import { createTokenizer } from '../src/foreign/tokenizer';
import { DTYPE_BITS } from '../src/formats/dtype';
import { decodeToF32 } from '../src/formats/half';
import { parseModelConfig } from '../src/formats/model-config';
import { copyOf, type Recipe } from '../src/formats/recipe';
import { parseRecipe } from '../src/formats/recipe-yaml';
import { openRunner, type RunnerOptions } from '../src/forward/runner';
import { openModel } from '../src/inputs/opened-model';
import type { TensorRef } from '../src/inputs/tensor-view';
import { methodById } from '../src/merge/methods';
import { importanceKind } from '../src/merge/plan/importance-kind';
import type { Plan } from '../src/merge/plan/plan';
import { wantsLambda, withLambda } from '../src/merge/plan/plan-lambda';
import { makePlan } from '../src/merge/plan/recipe-plan';
import type { Prepared } from '../src/merge/tensor/prepared';
import { resolveArchitecture } from '../src/models/resolution';
import type { EvaluateReport } from '../src/reports/evaluate';
import type { CalibrationReport } from '../src/reports/importance';
import type { ModelFolder } from '../src/sources/model-folder';
import { type NamedFolders, namedFolder } from './merge-in-node';

export interface NodeMerge {
  plan: Plan;
  prepared: Prepared | undefined;
  report: CalibrationReport;
  /** Losses of the merge on token ids, by the strided protocol. */
  evaluate(ids: ArrayLike<number>, protocol?: EvaluateProtocol): Promise<EvaluateReport>;
  /** Perplexity of the merge on token ids. */
  perplexity(ids: ArrayLike<number>, protocol?: EvaluateProtocol): Promise<number>;
  /** The same merge with another λ. */
  perplexityAt(lambda: number, ids: ArrayLike<number>, protocol?: EvaluateProtocol): Promise<number>;
  /** A merged tensor in f32. */
  tensor(name: string): Promise<Float32Array>;
}

export interface NodeModels {
  root: string;
  folders: NamedFolders;
  /** Calibration texts, or token ids, by name. */
  texts?: Readonly<Record<string, string | readonly number[]>>;
}

/** A recipe with everything that is worked out ahead of it; of LoRAs that become one the merge of models. Needs `navigator.storage` (store/opfs.test.fake.ts). */
export async function calibrateInNode(recipeText: string, models: NodeModels): Promise<NodeMerge> {
  const { recipe, problems } = parseRecipe(recipeText);
  if (!recipe) throw new Error(problems.map((p) => `${p.line}: ${p.message}`).join('\n'));
  const engine = createCpuBackend();
  const opened = new Map<string, ModelFolder>();
  const planOf = async (wanted: Recipe) => {
    const plan = await makePlan(
      wanted,
      async (name) => {
        const folder = await namedFolder(name, models.root, models.folders);
        opened.set(name, folder);
        return openModel(folder, name);
      },
      methodById,
    );
    const errors = plan.problems.filter((p) => p.severity === 'error');
    if (errors.length > 0) throw new Error(errors.map((p) => p.message).join('\n'));
    return plan;
  };
  const read = (ref: TensorRef, begin: number, end: number) =>
    fileOf(opened, ref.folder, ref.file)
      .open()
      .read(ref.begin + begin, ref.begin + end);
  const textOf = async (plan: Plan, path: string) => {
    const content = plan.extras.find((e) => e.path === path)?.content;
    if (!content) return undefined;
    if ('text' in content) return content.text;
    const file = fileOf(opened, content.folder, content.file);
    return new TextDecoder().decode(await file.open().read(0, file.byteLength));
  };
  const openMerge = async (plan: Plan, exact: boolean, prepared?: Prepared, options?: RunnerOptions) => {
    const architecture = resolveArchitecture(
      parseModelConfig((await textOf(plan, 'config.json'))!, 'config'),
    );
    const weights = await openPlannedWeights(plan, [engine], read, exact, prepared);
    const runner = openRunner(engine, architecture, weights, options);
    return {
      runner,
      close() {
        runner.close();
        weights.close();
      },
    };
  };

  const planned = await planOf(recipe);
  const plan = planned.calibration?.plan ?? planned;
  const { size, texts } = calibrationChoice(plan);
  const contributors: Contributor[] = [];
  for (const id of plan.contributors) {
    const single = await planOf(copyOf(id));
    const tokenizer = async () =>
      createTokenizer(
        {
          tokenizer: (await textOf(single, 'tokenizer.json'))!,
          config: (await textOf(single, 'tokenizer_config.json'))!,
          hasSentencePiece: false,
        },
        id,
      );
    const name = texts.get(id)!;
    const given = models.texts?.[name];
    const source: CalibrationSource =
      given === undefined
        ? { kind: 'self', seed: recipe.amalgam.seed ?? 0 }
        : typeof given === 'string'
          ? { kind: 'text', name, text: given }
          : { kind: 'tokens', name, ids: given, heldOut: wantsLambda(recipe) };
    contributors.push({
      id,
      model: createHash('sha256')
        .update(JSON.stringify(models.folders[id] ?? id))
        .digest('hex'),
      source,
      open: async (use) => ({
        ...(await openMerge(single, true, undefined, use.kind === 'pass' ? { streamBytes: 2 ** 30 } : {})),
        prefix: async () => (await tokenizer()).prefix,
        encode: async (text) => (await tokenizer()).encode(text),
      }),
    });
  }
  const kind = importanceKind(plan, methodById);
  const architecture = resolveArchitecture(parseModelConfig((await textOf(plan, 'config.json'))!, 'config'));
  const shared = { engine, contributors, size };
  const importance =
    kind &&
    (await prepareImportance(kind, {
      ...shared,
      plan,
      factored: planned.calibration !== undefined,
      methods: methodById,
      architecture,
      read,
      base: 'base',
      openMerge: (merge, solved) => openMerge(merge, true, solved, { streamBytes: 2 ** 30 }),
    }));
  const lambda = wantsLambda(recipe)
    ? await findLambda({
        ...shared,
        plan,
        base: 'base',
        openMerge: (with_) => openMerge(with_, false, importance?.prepared),
      })
    : undefined;
  const final = lambda ? withLambda(plan, lambda.chosen) : plan;
  return {
    plan: final,
    prepared: importance?.prepared,
    report: {
      ...(importance ? { importance: importance.report } : {}),
      ...(lambda ? { lambda } : {}),
    },
    evaluate: (ids, protocol) => evaluationOf(final, ids, protocol),
    perplexity: async (ids, protocol) => (await evaluationOf(final, ids, protocol)).perplexity,
    perplexityAt: async (value, ids, protocol) =>
      (await evaluationOf(withLambda(final, value), ids, protocol)).perplexity,
    async tensor(name) {
      const weights = await openPlannedWeights(final, [engine], read, true, importance?.prepared);
      const { shape, dtype } = weights.tensors.get(name)!;
      const values = new Float32Array(shape.reduce((a, b) => a * b, 1));
      const bytes = await weights.read(name, 0, (values.length * DTYPE_BITS[dtype]) / 8);
      weights.close();
      decodeToF32(bytes, dtype, values);
      return values;
    },
  };

  async function evaluationOf(merged: Plan, ids: ArrayLike<number>, protocol = DEFAULT_PROTOCOL) {
    const merge = await openMerge(merged, false, importance?.prepared);
    try {
      return await evaluate(merge.runner, { ids, bos: null }, protocol);
    } finally {
      merge.close();
    }
  }
}

function fileOf(opened: ReadonlyMap<string, ModelFolder>, folder: string, path: string) {
  return opened.get(folder)!.files.find((f) => f.path === path)!;
}
