/** One model in another form: the merge of a recipe that copies it. */
import { namedFiles } from '../../formats/gguf-type';
import { copyOf, type Recipe } from '../../formats/recipe';
import type { OpenModels } from '../../host/models';
import { warningsOf } from '../../inputs/problems';
import { mergeRecipe, recipePlanReport } from '../../recipe/recipe-jobs';
import type { Progress } from '../../reports/job';
import type { ConvertReport, ConvertRequest } from './report';

/** The recipe that writes a model in this form, bytes unchanged where the form does not ask for others. */
export function conversionOf({ model, form }: Pick<ConvertRequest, 'model' | 'form'>): Recipe {
  const { dtype, gguf, ggufOnly, shardBytes } = form;
  return {
    ...copyOf(model),
    ...(dtype === 'same' ? {} : { outDtype: dtype }),
    amalgam: { shardBytes, ...(gguf === 'none' ? {} : { gguf, ...(ggufOnly && { ggufOnly }) }) },
  };
}

/** Writes a model in another form. @throws AmalgamError as a merge */
async function runConvert(
  request: ConvertRequest,
  models: OpenModels,
  signal: AbortSignal,
  onProgress: (progress: Progress) => void,
): Promise<ConvertReport> {
  const { engine, destination } = request;
  const recipe = conversionOf(request);
  const { outputFiles, problems } = await recipePlanReport(recipe, models);
  const report = await mergeRecipe({ recipe, engine, destination }, models, signal, onProgress);
  return {
    ...report,
    notes: warningsOf(problems),
    files: 'name' in destination ? namedFiles(outputFiles, destination.name) : outputFiles,
  };
}

/** The calls of the tool. */
export const jobs = { convert: runConvert } as const;
