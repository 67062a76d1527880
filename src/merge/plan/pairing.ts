/** Whether models belong together, by their configs: what would otherwise show up as a hundred wrong tensors. */

import { isWeightDtype } from '../../formats/dtype';
import { fullPrecisionName, namesOneModel } from '../../formats/hub-id';
import { counted } from '../../formats/quantity';
import { parseModelRef } from '../../formats/recipe';
import type { Model } from '../../inputs/model';
import { layerCount } from '../../inputs/opened-model';
import { nameSome, type Problems } from '../../inputs/problems';
import { isTextTower } from '../../models/aliases';
import { hubCommit } from '../../sources/model-folder';

/**
 * Compares models with the reference (the base, else the first model).
 *
 * @param whole true when the models are merged whole, so that their numbers of layers must agree
 * @returns the models that do not fit; their tensors need not be compared
 */
export async function unfitModels(
  reference: Model,
  models: readonly Model[],
  whole: boolean,
  problems: Problems,
): Promise<Set<Model>> {
  const unfit = new Set<Model>();
  for (const checkpoint of new Set(models.map((model) => model.checkpoint))) {
    noteQuantization(
      models.filter((model) => model.checkpoint === checkpoint),
      problems,
    );
  }
  for (const model of models) {
    noteLineage(model, problems);
    const fault = model === reference ? undefined : await compare(reference, model, whole);
    if (!fault) {
      if (model !== reference) await noteConfigs(reference, model, problems);
      continue;
    }
    unfit.add(model);
    problems.add({
      severity: 'error',
      ...fault,
      remedy: `Take ${model.ref} out of the recipe. Only models made from the same base can be merged.`,
    });
  }
  noteDtypes(models, problems);
  return unfit;
}

async function compare(
  reference: Model,
  model: Model,
  whole: boolean,
): Promise<{ code: string; message: string } | undefined> {
  const a = reference.checkpoint.config;
  const b = model.checkpoint.config;
  const both = (what: string, x: unknown, y: unknown) =>
    `${model.ref} has ${what} ${String(y)}, but ${reference.ref} has ${String(x)}.`;
  const differ = (x: unknown, y: unknown) => x !== undefined && y !== undefined && x !== y;
  const isOther = differ(a?.modelType, b?.modelType) && !isTextTower(b, a);
  if (isOther && !(await isOneInGguf(reference, model))) {
    return {
      code: 'ArchitectureMismatch',
      message: `${model.ref} is a ${b!.modelType} model, but ${reference.ref} is a ${a!.modelType} model.`,
    };
  }
  if (differ(a?.hiddenSize, b?.hiddenSize)) {
    return { code: 'HiddenSizeMismatch', message: both('the hidden size', a!.hiddenSize, b!.hiddenSize) };
  }
  const layers = [layerCount(reference.checkpoint), layerCount(model.checkpoint)];
  if (whole && layers[0] !== layers[1]) {
    return {
      code: 'LayerCountMismatch',
      message: `${model.ref} has ${counted(layers[1]!, 'layer')}, but ${reference.ref} has ${layers[0]}.`,
    };
  }
  return undefined;
}

/** A GGUF file calls several types by one name: what it says is llama may be a mistral. */
async function isOneInGguf(...pair: readonly Model[]): Promise<boolean> {
  if (!pair.some(isGguf)) return false;
  const { GGUF_ARCHITECTURES } = await import('../../models/gguf-architectures');
  const [one, other] = pair.map(({ checkpoint }) => GGUF_ARCHITECTURES[checkpoint.config?.modelType ?? '']);
  return one !== undefined && one.name === other?.name && one.experts === other.experts;
}

function isGguf({ checkpoint }: Model): boolean {
  return !checkpoint.weightFiles.every((file) => file.path.endsWith('.safetensors'));
}

/** Configs that say otherwise what is computed: the output has the reference's, the weights come from both. */
async function noteConfigs(reference: Model, model: Model, problems: Problems): Promise<void> {
  const [base, other] = [reference.checkpoint.config, model.checkpoint.config];
  if (!base || !other || base.text === other.text) return;
  // most models of one recipe have the same config, and the first plan waits for none of it
  const { computedOtherwise } = await import('../../inputs/config-difference');
  const said = computedOtherwise(base, other);
  if (said.length === 0) return;
  problems.warn(
    'ConfigsDiffer',
    `By its config, ${model.ref} computes with its weights differently from ${reference.ref}: ${nameSome(said)}. The output has the config of one of them.`,
    'Merge models that were trained with the same settings, or make sure that the difference does not matter for what you take from each.',
  );
}

/** @param models of one checkpoint */
function noteQuantization(models: readonly Model[], problems: Problems): void {
  const { dequantized, checkpoint } = models[0]!;
  if (!dequantized) return;
  const { path } = checkpoint;
  const { path: name } = parseModelRef(path).model;
  const full = fullPrecisionName(name);
  problems.note(
    'Dequantized',
    `Weights of ${path} are stored as ${dequantized.join(' and ')}: each is read as the number that it stands for, and written as BF16 where the recipe has no out_dtype. What quantizing took from them stays lost.`,
    // nobody trains on GGUF
    models.some((model) => model.adapter && !isGguf(model))
      ? 'No action needed: an adapter that was trained on these weights belongs on them.'
      : name.endsWith(full)
        ? 'No action needed. Choose an output dtype to have them in another.'
        : `No action needed. From ${full} itself the output would be more precise.`,
  );
}

/** An adapter from the Hub on a base from the Hub that is not the one it names. */
function noteLineage({ checkpoint, adapter }: Model, problems: Problems): void {
  const hub = hubCommit(checkpoint.folder.origin);
  const trainedOn = adapter?.config.baseModel;
  if (!adapter || trainedOn === undefined || !hub) return;
  if (!/^[\w.-]+\/[\w.-]+$/.test(trainedOn) || namesOneModel(trainedOn, hub.repo)) return;
  // tensors that do not fit are errors of their own
  problems.note(
    'AdapterBaseDiffers',
    `${adapter.path} says that it was trained on ${trainedOn}, and the recipe puts it on ${checkpoint.path}.`,
    `No action needed where the two are the same model; else put it on ${trainedOn}.`,
  );
}

function noteDtypes(models: readonly Model[], problems: Problems): void {
  const byDtype = new Map<string, Set<string>>();
  for (const { checkpoint, tensors } of models) {
    for (const { dtype } of tensors.values()) {
      if (isWeightDtype(dtype)) byDtype.set(dtype, (byDtype.get(dtype) ?? new Set()).add(checkpoint.path));
    }
  }
  if (byDtype.size < 2 || new Set(models.map((model) => model.checkpoint)).size < 2) return;
  const parts = [...byDtype].map(([dtype, paths]) => `${dtype} in ${nameSome([...paths])}`);
  problems.note(
    'DtypesDiffer',
    `Weights are stored in different formats: ${parts.join('; ')}. Everything is computed in F32 and rounded once.`,
    'No action needed. Choose an output dtype to have all of them in one format.',
  );
}
