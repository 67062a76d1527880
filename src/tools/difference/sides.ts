/** The two models of a comparison, opened and put together with their adapters. */
import { AmalgamError } from '../../errors';
import { repositoriesOf } from '../../formats/recipe';
import type { Adapter } from '../../inputs/adapter';
import type { Checkpoint } from '../../inputs/checkpoint';
import type { Model } from '../../inputs/model';
import { modelTensors } from '../../inputs/model-tensors';
import { collectProblems } from '../../inputs/problems';
import type { OpenByPath } from '../../merge/plan/recipe-models';
import { resolveHeads } from '../../merge/plan/tied-heads';

export interface Sides {
  base: Model;
  tuned: Model;
  /** Remarks from opening the pair, as sentences. */
  notes: string[];
}

/**
 * Opens both models by their references. Heads are brought to one form, so that a tied head and a separate one can be
 * compared.
 *
 * @throws AmalgamError `Usage` (an adapter without its model, a model behind a “+”), `PlanHasErrors` (an adapter that does
 *   not fit its model), and errors of opening
 */
export async function openSides(base: string, finetuned: string, open: OpenByPath): Promise<Sides> {
  const problems = collectProblems();
  const models: Model[] = [];
  for (const ref of [base, finetuned]) {
    const [path, adapterPath] = repositoriesOf(ref);
    const checkpoint = await openCheckpointPart(path, ref, open);
    const adapter = adapterPath === undefined ? undefined : await openAdapterPart(adapterPath, open);
    models.push(modelTensors(ref, checkpoint, adapter, problems));
  }
  resolveHeads(models, problems);
  const error = problems.list().find(({ severity }) => severity === 'error');
  if (error) throw new AmalgamError('PlanHasErrors', error.message, error.remedy);
  const notes = problems
    .list()
    .map(({ severity, message, remedy }) =>
      severity === 'warning' ? `Warning: ${message} ${remedy}` : message,
    );
  return { base: models[0]!, tuned: models[1]!, notes };
}

async function openCheckpointPart(path: string, ref: string, open: OpenByPath): Promise<Checkpoint> {
  const model = await open(path);
  if (model.kind === 'checkpoint') return model;
  throw new AmalgamError(
    'Usage',
    `${ref} is an adapter, not a model.`,
    `Write the model it belongs to in front of it: ${model.config.baseModel ?? 'MODEL'}+${ref}.`,
  );
}

async function openAdapterPart(path: string, open: OpenByPath): Promise<Adapter> {
  const model = await open(path);
  if (model.kind === 'adapter') return model;
  throw new AmalgamError(
    'Usage',
    `${path} stands behind a “+”, but it is a whole model.`,
    `Compare with ${path} itself.`,
  );
}

/** The weight files of both models, each once: what a comparison reads. */
export function weightFiles({ base, tuned }: Sides): { folder: string; file: string }[] {
  const files = new Map<string, { folder: string; file: string }>();
  for (const { tensors } of [base, tuned]) {
    for (const { view } of tensors.values()) {
      const { origin, lowRank, addend } = view;
      for (const ref of [origin, lowRank?.a, lowRank?.b, lowRank?.magnitude, addend?.tensor]) {
        if (ref) files.set(`${ref.folder}\0${ref.file}`, { folder: ref.folder, file: ref.file });
      }
    }
  }
  return [...files.values()];
}
