/** Whether the output has a head of its own, and what stands in for the head of a model that has none. */
import type { Model } from '../../inputs/model';
import { nameSome, type Problems } from '../../inputs/problems';

/**
 * Brings the heads of all models to one form, in place. Where every head is tied to its embedding, the output is tied
 * too and stored copies of the head, which a loader ignores, are left out. Where one model has a head of its own, the
 * output has one, and the embedding stands in for the head of every tied model (as in mergekit 0.1.4, `plan.py` and
 * `io/tasks.py`, which leaves the config of the output tied, however, so that loaders ignore the head).
 *
 * @returns true when the output is tied, undefined when no model has an embedding that could be a head
 */
export function resolveHeads(models: readonly Model[], problems: Problems): boolean | undefined {
  const known = models.filter(({ head, embedding }) => head !== undefined && embedding !== undefined);
  const tied = known.filter((model) => model.tied);
  const untied = known.filter((model) => !model.tied && model.tensors.has(model.head!));
  if (tied.length === 0) return known.length > 0 ? false : undefined;
  if (untied.length === 0) {
    const stored = tied.filter(({ tensors, head }) => tensors.delete(head!));
    if (stored.length > 0) {
      problems.note(
        'TiedHeadLeftOut',
        `${names(stored)} ties its head to the embedding and stores the head all the same; loaders ignore it, and the output does not have it.`,
      );
    }
    return true;
  }
  for (const model of tied) {
    const embedding = model.tensors.get(model.embedding!);
    if (embedding) model.tensors.set(model.head!, { ...embedding, name: model.head! });
  }
  problems.note(
    'HeadUntied',
    `${names(untied)} has a head of its own, ${names(tied)} has its embedding for a head: there the embedding stands in, and the output has its own head (tie_word_embeddings: false).`,
  );
  return false;
}

/**
 * Names of one tensor in transformers: the embedding of an encoder–decoder (T5, BART and what is made like them) with its copies on
 * both sides, and the bias of the head that fills in masked words (BERT, RoBERTa).
 */
const SHARED = [
  ['shared.weight', 'encoder.embed_tokens.weight', 'decoder.embed_tokens.weight'],
  ['cls.predictions.bias', 'cls.predictions.decoder.bias'],
  ['lm_head.bias', 'lm_head.decoder.bias'],
];

/**
 * Brings tensors that are shared to the same names, in place: one that a model stores under fewer names than another, as
 * transformers saves it, stands under the others too.
 */
export function resolveCopies(models: readonly Model[], problems: Problems): void {
  for (const group of SHARED) {
    const aliases = group.filter((name) => models.some(({ tensors }) => tensors.has(name)));
    const fewer = models.filter(({ tensors }) => {
      const shared = aliases.flatMap((name) => tensors.get(name) ?? [])[0];
      const lacking = shared ? aliases.filter((name) => !tensors.has(name)) : [];
      for (const name of lacking) tensors.set(name, { ...shared!, name });
      return lacking.length > 0;
    });
    if (fewer.length === 0) continue;
    problems.note(
      'TensorShared',
      `${names(fewer)} stores a tensor under fewer names than another model: ${nameSome(aliases)} are one, and it stands under all of them.`,
    );
  }
}

function names(models: readonly Model[]): string {
  return nameSome(models.map((model) => model.ref));
}
