/** Whether models belong together, by their configs: what would otherwise show up as a hundred wrong tensors. */
import { isWeightDtype } from '../../formats/dtype';
import type { Model } from '../../inputs/model';
import { layerCount } from '../../inputs/open-model';
import { nameSome, type Problems } from '../../inputs/problems';

/**
 * Compares models with the reference (the base, else the first model).
 *
 * @param whole true when the models are merged whole, so that their numbers of layers must agree
 * @returns the models that do not fit; their tensors need not be compared
 */
export function unfitModels(
  reference: Model,
  models: readonly Model[],
  whole: boolean,
  problems: Problems,
): Set<Model> {
  const unfit = new Set<Model>();
  for (const model of models) {
    noteQuantization(model, problems);
    noteLineage(model, problems);
    const fault = model === reference ? undefined : compare(reference, model, whole);
    if (!fault) continue;
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

function compare(
  reference: Model,
  model: Model,
  whole: boolean,
): { code: string; message: string } | undefined {
  const a = reference.checkpoint.config;
  const b = model.checkpoint.config;
  const both = (what: string, x: unknown, y: unknown) =>
    `${model.ref} has ${what} ${String(y)}, but ${reference.ref} has ${String(x)}.`;
  const differ = (x: unknown, y: unknown) => x !== undefined && y !== undefined && x !== y;
  if (differ(a?.modelType, b?.modelType)) {
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
      message: `${model.ref} has ${layers[1]} layers, but ${reference.ref} has ${layers[0]}.`,
    };
  }
  return undefined;
}

function noteQuantization({ ref, checkpoint }: Model, problems: Problems): void {
  const method = checkpoint.config?.quantization;
  if (method === undefined) return;
  problems.add({
    severity: 'error',
    code: 'Quantized',
    message: `The weights of ${ref} are quantised (${method}), so they are no numbers that can be merged.`,
    remedy: 'Use the model in F32, F16 or BF16 that it was made from.',
  });
}

/** An adapter from the Hub on a base from the Hub that is not the one it names. */
function noteLineage({ checkpoint, adapter }: Model, problems: Problems): void {
  const { origin } = checkpoint.folder;
  const trainedOn = adapter?.config.baseModel;
  if (!adapter || trainedOn === undefined || origin.kind !== 'hub') return;
  if (!/^[\w.-]+\/[\w.-]+$/.test(trainedOn) || trainedOn.toLowerCase() === origin.repo.toLowerCase()) return;
  problems.add({
    severity: 'warning',
    code: 'AdapterBaseDiffers',
    message: `${adapter.path} was trained on ${trainedOn}, but the recipe puts it on ${checkpoint.path}.`,
    remedy: `Put it on ${trainedOn}, unless you know that the two are the same.`,
  });
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
  problems.add({
    severity: 'note',
    code: 'DtypesDiffer',
    message: `Weights are stored in different formats: ${parts.join('; ')}. Everything is computed in F32 and rounded once.`,
    remedy: 'Nothing to do. Choose an output dtype to have all of them in one format.',
  });
}
