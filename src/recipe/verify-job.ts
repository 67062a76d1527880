import { AmalgamError } from '../errors';
import type { OpenModels } from '../host/models';
import { inputName } from '../inputs/input-name';
import type { MergeReport, MergeRequest, VerifyReport, VerifyRequest } from '../reports/merge';
import { sha256Of } from '../sources/sha256';

/**
 * Merges again, by `merge`, and compares shard by shard.
 * @throws AmalgamError `NotFound` when the model has no shards of those names, and what the merge throws
 */
export async function runVerify(
  request: VerifyRequest,
  merge: (request: MergeRequest) => Promise<MergeReport>,
  models: OpenModels,
  signal: AbortSignal,
): Promise<VerifyReport> {
  const begun = performance.now();
  const { recipe, engine } = request;
  const again = await merge({ recipe, engine, destination: { kind: 'nowhere' } });
  const shards = [];
  for (const { file, sha256: merged } of again.shards) {
    const stored = await sha256Of(storedShard(models, request.merged, file), signal);
    shards.push({ file, stored, merged });
  }
  return {
    agrees: shards.every((s) => s.stored === s.merged),
    shards,
    changedInputs: again.inputs
      .map(({ id, file, sha256 }) => ({ name: inputName(id, file), sha256 }))
      .filter(({ name, sha256 }) => request.inputs[name] !== undefined && request.inputs[name] !== sha256)
      .map(({ name }) => name),
    engine: again.engine,
    seconds: (performance.now() - begun) / 1000,
  };
}

function storedShard(models: OpenModels, merged: string, file: string) {
  try {
    return models.file(merged, file).file.open();
  } catch (cause) {
    throw new AmalgamError(
      'NotFound',
      `${merged} has no ${file}, which its recipe writes.`,
      'The folder is incomplete, or its shards were rewritten.',
      { cause },
    );
  }
}
