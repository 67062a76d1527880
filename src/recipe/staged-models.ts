/** The opened models, with the outputs of stages among them under the names of the stages. */
import { AmalgamError } from '../errors';
import type { OpenModels } from '../host/models';
import type { OpenModel } from '../inputs/opened-model';
import { findFile } from '../sources/model-folder';

interface StagedModels extends OpenModels {
  /** Makes the output of a stage a model by the name of the stage. */
  addStage(name: string, output: OpenModel): void;
}

export function stagedModels(models: OpenModels): StagedModels {
  const outputs = new Map<string, OpenModel>();
  return {
    ...models,
    addStage(name, output) {
      outputs.set(name, output);
    },
    async open(path) {
      return outputs.get(path) ?? models.open(path);
    },
    file(folder, path) {
      const output = outputs.get(folder);
      if (!output) return models.file(folder, path);
      const file = findFile(output.folder, path);
      if (file) return { folder: output.folder, file };
      throw new AmalgamError('NotFound', `The stage ${folder} wrote no ${path}.`, 'Please report this.');
    },
  };
}
