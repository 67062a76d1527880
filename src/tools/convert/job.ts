/** One model in another form: the merge of a recipe that copies it. */
import { namedFiles } from '../../formats/gguf-type';
import { copyOf, type Recipe } from '../../formats/recipe';
import type { OpenModels } from '../../host/models';
import { warningsOf } from '../../inputs/problems';
import { mergeRecipe, recipePlanReport } from '../../recipe/recipe-jobs';
import type { BackendChoice } from '../../reports/backend';
import type { DestinationSpec, Progress } from '../../reports/job';
import type { MergeReport } from '../../reports/merge';
import type { OptionValues } from '../../reports/option';
import type { convertOptions } from './options';

/** The recipe that writes a model in this form, bytes unchanged where the form does not ask for others. */
function conversionOf({ model, form }: Pick<ConvertRequest, 'model' | 'form'>): Recipe {
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

// Conversion of one model across the worker boundary.

interface ConvertRequest {
  /** `path` or `base+adapter`, which becomes one model. */
  model: string;
  form: OptionValues<typeof convertOptions>;
  engine: BackendChoice;
  destination: DestinationSpec;
}

/** The report of the merge that wrote it, what is to be known of the model, and the names of all files. */
type ConvertReport = MergeReport & { notes: string[]; files: string[] };
