/** One merge whose change is cut to a LoRA of its base: merged tensor by tensor, decomposed, checked, written. */

import type { Backend } from '../../backend/backend';
import { calibrate } from '../../calibration/job';
import { castPlans, openMerged } from '../../evaluate/planned-weights';
import { isWeightDtype } from '../../formats/dtype';
import { textSha256 } from '../../formats/hashes';
import { withRecipeLink } from '../../formats/model-card';
import { formatRecipe } from '../../formats/recipe-format';
import { snippetSection, snippetsOf } from '../../formats/use-snippets';
import { openBackend } from '../../host/backends';
import { progressMeter } from '../../host/progress-meter';
import { withResources } from '../../host/resources';
import { openHashedInputs } from '../../host/weight-inputs';
import type { Model, ModelTensor } from '../../inputs/model';
import { collectProblems } from '../../inputs/problems';
import { derivedTensor } from '../../inputs/row-map';
import { inputName, type ReadTensor } from '../../inputs/stored-tensor';
import { type Plan, requireClean, type TensorPlan } from '../../merge/plan/plan';
import { storedInputs } from '../../merge/plan/plan-bytes';
import { resolveHeads } from '../../merge/plan/tied-heads';
import type { Prepared } from '../../merge/tensor/prepared';
import { studioAddress } from '../../merge/version';
import { tensorKey } from '../../models/families';
import type { CutToLora } from '../../recipe/recipe-jobs';
import type { Progress } from '../../reports/job';
import { cutWords } from '../../reports/lora';
import { commitOutput } from '../../write/output-commit';
import { openSides } from '../difference/compare-models';
import { weightFiles } from '../difference/compare-tensors';
import { writeAdapter } from './adapter-file';
import { extractLora } from './extract-lora';

const DTYPES = { float32: 'F32', float16: 'F16', bfloat16: 'BF16' } as const;

/**
 * Merges, cuts and writes. Whatever fails, the destination is discarded.
 * @throws AmalgamError `PlanHasErrors`, `NothingToExtract`, and what calibration, sources, engine and destination throw
 */
export const cutToLora: CutToLora = async (plan, request, models, signal, onProgress) => {
  requireClean(plan);
  const begun = performance.now();
  const { recipe, extras } = plan;
  const { base: ref, rank, maxRank } = plan.cut;
  const { engine: choice } = request;
  const calibrated = await calibrate(plan.cut.plan, { models, engine: choice, signal, onProgress });
  const merge = calibrated?.plan ?? plan.cut.plan;
  return withResources(async ({ keep, output }) => {
    // what can refuse does so before anything is downloaded
    const engine = keep(await openBackend(choice));
    // merging waits for its own results, between those of the decomposition
    const merging = keep(await openBackend(engine.kind));
    const destination = await output(request.destination);
    const meter = progressMeter<Progress>(onProgress, () => engine);
    const sides = await openSides(ref, ref, models.open);
    const files = [...merge.inputs, ...weightFiles(sides)].map(({ folder, file }) => ({
      ...{ folder, file },
      byteLength: models.file(folder, file).file.byteLength,
    }));
    const inputs = [...new Map(files.map((one) => [inputName(one.folder, one.file), one])).values()];
    const hashing = {
      begin: (bytes: number) => meter.begin('hashing', bytes),
      advance: (bytes: number, name: string) => meter.advance(bytes, name),
    };
    if (plan.bytesToDownload > 0 && !models.passing) meter.begin('downloading', plan.bytesToDownload);
    const opened = keep(
      await openHashedInputs({ inputs }, models, signal, hashing.advance, hashing, calibrated?.hashes),
    );
    const { base } = sides;
    const tuned = keep(await openMergedModel(merge, base, merging, opened.read, calibrated?.prepared));
    const problems = collectProblems();
    resolveHeads([base, tuned.model], problems);
    const { file, config, report } = await extractLora(
      {
        ...{ base, tuned: tuned.model, engine, read: opened.read, rank, maxRank, signal, growing: true },
        dtype: recipe.outDtype === undefined ? 'F32' : DTYPES[recipe.outDtype],
        seed: recipe.amalgam.seed ?? 0,
        settings: { include: [], exclude: [], embeddings: 'lora', vectors: 'save' },
        ...(request.tileElements === undefined ? {} : { tileElements: request.tileElements }),
        onPhase: (phase, bytes, tensors) =>
          meter.begin(phase === 'extracting' ? 'merging' : 'checking', bytes, tensors),
        onBytes: (bytes, tensor) => meter.advance(bytes, tensor),
        onTensor: () => meter.finishTensor(),
      },
      [...sides.notes, ...problems.list().map(({ message }) => message)],
    );
    const { name = 'merged' } = 'name' in request.destination ? request.destination : {};
    const use = snippetsOf({ name, model: false, base: base.ref, peft: true });
    const texts = Object.fromEntries(
      extras.flatMap(({ path, content }) => ('text' in content ? [[path, content.text] as const] : [])),
    );
    texts['adapter_config.json'] = config;
    texts['README.md'] = withRecipeLink(texts['README.md']!, studioAddress(), formatRecipe(plan.recipe));
    texts['README.md'] += `\n## How near it comes\n\n${cutWords(report).join('\n')}\n${snippetSection(use)}`;
    const [weights] = await writeAdapter(destination, file, texts, opened.read);
    const hashes = await opened.hashAll(hashing);
    await commitOutput(destination, Object.fromEntries(hashes));
    meter.flush();
    const { base: _, finetuned: __, engine: kind, adapter, version, ...lora } = report;
    return {
      recipe,
      recipeSha256: await textSha256(formatRecipe(recipe)),
      ...{ engine: kind, adapter, version, lora, use, tensors: [] },
      seconds: (performance.now() - begun) / 1000,
      stages: meter.stages(),
      peakBytes: plan.peakBytes,
      inputs: inputs.map(({ folder, file: path }) => ({
        ...{ id: folder, file: path },
        hash: hashes.get(inputName(folder, path))!,
      })),
      shards: [{ file: weights.file, bytes: weights.bytes, hash: weights.hash }],
      ...(calibrated ? { ahead: calibrated.report } : {}),
    };
  });
};

// The model that a plan would write, as one side of a difference: a tensor is merged when it is read, in F32 and whole.

/**
 * @param base whose tensors the merge has
 * @param read of the inputs of the plan
 */
async function openMergedModel(
  plan: Plan,
  base: Model,
  engine: Backend,
  read: ReadTensor,
  prepared: Prepared | undefined,
): Promise<{ model: Model; close(): void }> {
  const planned = castPlans(plan.tensors).map((tensor) =>
    tensor.copy || !isWeightDtype(tensor.dtype) ? tensor : { ...tensor, dtype: 'F32' as const },
  );
  const computed = planned.filter(({ copy }) => !copy);
  const merged = await openMerged(plan, computed, [engine], read, prepared);
  const family = base.checkpoint.family;
  const viewOf = (tensor: TensorPlan): ModelTensor['view'] => {
    if (tensor.copy) return { origin: tensor.copy };
    const place = { folder: plan.cut?.base ?? base.ref, file: 'merged', key: tensor.name };
    const origin = derivedTensor(place, tensor.shape, storedInputs(tensor), async () => {
      const bytes = await merged.read(tensor, 0, 4 * tensor.elements);
      const values = new Float32Array(bytes.buffer, bytes.byteOffset, tensor.elements);
      return async (begin, end) => values.subarray(begin, end);
    });
    return { origin };
  };
  const tensors = new Map(
    planned.map((tensor): [string, ModelTensor] => {
      const { name, shape, dtype } = tensor;
      return [tensorKey(name, family), { name, shape, dtype, view: viewOf(tensor) }];
    }),
  );
  const hasHead = base.head !== undefined && tensors.has(base.head);
  return {
    model: { ...base, ref: 'the merge', tensors, tied: base.tied && !hasHead },
    close: () => merged.rest(),
  };
}
