/** A running model that stays open between texts and takes the next recipe of the same inputs and outputs. */
import type { OpenModels } from '../host/models';
import type { Plan } from '../merge/plan/plan';
import { throwIfCanceled } from '../sources/cancellation';
import { openRunningModel, type RunningModel, type RunningOptions } from './running-model';

/** A recipe that is planned, and what its merge needs. */
export type ReadyRecipe = Pick<RunningOptions, 'plan' | 'prepared'>;

export type KeptModel = ReturnType<typeof keepModel>;

interface Kept {
  structure: string;
  /** The files that are open, by name: a folder that was opened again under the same name has others. */
  inputs: ReadonlyMap<string, ReturnType<OpenModels['file']>['file']>;
  models: RunningOptions['models'];
  engine: RunningOptions['engine'];
  weights: NonNullable<RunningOptions['runner']>['weights'];
  model: RunningModel;
}

export function keepModel() {
  let kept: Kept | undefined;
  /** Made by the first model of a structure, for all of them. */
  let tokenizer: { structure: string; made: ReturnType<RunningModel['tokenizer']> } | undefined;
  const stopTokenizer = () => {
    void tokenizer?.made.then(
      (made) => made.close(),
      () => undefined,
    );
    tokenizer = undefined;
  };
  /** Closes a model whose device is lost; its tokenizer is of use to the next. */
  const lose = () => {
    kept?.model.close();
    kept = undefined;
  };
  const close = () => {
    lose();
    stopTokenizer();
  };
  const become = async (ready: ReadyRecipe, signal: AbortSignal) => {
    try {
      await kept!.model.become!(ready, signal);
    } catch (thrown) {
      lose();
      throw thrown;
    }
  };
  const fits = ({ plan }: ReadyRecipe) =>
    kept !== undefined &&
    kept.structure === structureOf(plan) &&
    plan.inputs.every(
      (input) => kept!.inputs.get(inputOf(input)) === kept!.models.file(input.folder, input.file).file,
    );
  const withTokenizer = (model: RunningModel, structure: string): RunningModel => ({
    ...model,
    async tokenizer() {
      tokenizer ??= { structure, made: model.tokenizer() };
      const { made } = tokenizer;
      made.catch(() => {
        if (tokenizer?.made === made) tokenizer = undefined;
      });
      return made;
    },
  });
  return {
    /** The model at this recipe: the one that is open, turned to it, or a new one. @throws as `openRunningModel` */
    async open(options: RunningOptions): Promise<RunningModel> {
      const { plan, models, engine, signal } = options;
      throwIfCanceled(signal);
      // what somebody else's tokenizer does ends with the job that asked for it
      signal.addEventListener('abort', stopTokenizer, { once: true });
      const weights = options.runner?.weights;
      if (kept?.engine === engine && kept.weights === weights && fits(options)) {
        await become(options, signal);
        return kept.model;
      }
      lose();
      const structure = structureOf(plan);
      if (tokenizer?.structure !== structure) stopTokenizer();
      const model = withTokenizer(await openBeyond(options), structure);
      const inputs = new Map(
        plan.inputs.map((input) => [inputOf(input), models.file(input.folder, input.file).file]),
      );
      kept = { structure, inputs, models, engine, weights, model };
      return model;
    },
    /** Turns the open model to another recipe, between two passes; false where that takes a new model. @throws as `open` */
    async turn(ready: ReadyRecipe, signal: AbortSignal): Promise<boolean> {
      if (!fits(ready)) return false;
      await become(ready, signal);
      return true;
    },
    lose,
    close,
  };
}

/** Opens a live model that outlives the job which opens it: only until it is open does the job's signal end it. */
async function openBeyond({ signal, ...options }: RunningOptions): Promise<RunningModel> {
  const own = new AbortController();
  const stop = () => own.abort();
  signal.addEventListener('abort', stop);
  try {
    return await openRunningModel({ ...options, live: true, signal: own.signal });
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

function inputOf({ folder, file }: Plan['inputs'][number]): string {
  return `${folder} ${file}`;
}

/** Equal where two recipes differ in their method and its parameters at most. */
function structureOf({ recipe, tensors }: Plan): string {
  const { models, mergeMethod: _, parameters: __, ...rest } = recipe;
  const outputs = tensors.map(({ name, shape, dtype }) => [name, dtype, ...shape]);
  return JSON.stringify([rest, models?.map(({ model }) => model), outputs]);
}
