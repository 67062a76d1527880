/** A running model that stays open between texts and takes the next recipe of the same inputs and outputs. */
import type { Plan } from '../merge/plan/plan';
import { openRunningModel, type RunningModel, type RunningOptions } from './running-model';

/** A recipe that is planned, and what its merge needs. */
export type ReadyRecipe = Pick<RunningOptions, 'plan' | 'prepared'>;

export type KeptModel = ReturnType<typeof keepModel>;

interface Kept {
  structure: string;
  inputs: ReadonlySet<string>;
  engine: RunningOptions['engine'];
  model: ReturnType<typeof keepTokenizer>;
}

export function keepModel() {
  let kept: Kept | undefined;
  const close = () => {
    kept?.model.close();
    kept = undefined;
  };
  const become = async (ready: ReadyRecipe, signal: AbortSignal) => {
    try {
      await kept!.model.become!(ready, signal);
    } catch (thrown) {
      close();
      throw thrown;
    }
  };
  const fits = ({ plan }: ReadyRecipe) =>
    kept !== undefined &&
    kept.structure === structureOf(plan) &&
    plan.inputs.every((input) => kept!.inputs.has(inputOf(input)));
  return {
    /** The model at this recipe: the one that is open, turned to it, or a new one. @throws as `openRunningModel` */
    async open(options: RunningOptions): Promise<RunningModel> {
      const { plan, engine, signal } = options;
      if (kept?.engine === engine && fits(options)) await become(options, signal);
      else {
        close();
        const model = keepTokenizer(await openBeyond(options));
        kept = { structure: structureOf(plan), inputs: new Set(plan.inputs.map(inputOf)), engine, model };
      }
      const { model } = kept!;
      // what somebody else's tokenizer does ends with the job that asked for it
      signal.addEventListener('abort', model.stopTokenizer, { once: true });
      return model;
    },
    /** Turns the open model to another recipe, between two passes; false where that takes a new model. @throws as `open` */
    async turn(ready: ReadyRecipe, signal: AbortSignal): Promise<boolean> {
      if (!fits(ready)) return false;
      await become(ready, signal);
      return true;
    },
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

/** The same model, whose tokenizer stays with it. */
function keepTokenizer(model: RunningModel): RunningModel & { stopTokenizer(): void } {
  let made: ReturnType<RunningModel['tokenizer']> | undefined;
  const stopTokenizer = () => {
    void made?.then(
      (tokenizer) => tokenizer.close(),
      () => undefined,
    );
    made = undefined;
  };
  return {
    ...model,
    async tokenizer() {
      made ??= model.tokenizer();
      const making = made;
      making.catch(() => {
        if (made === making) made = undefined;
      });
      return making;
    },
    stopTokenizer,
    close() {
      stopTokenizer();
      model.close();
    },
  };
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
