import { AmalgamError } from '../errors';
import type { OpenModels } from '../host/models';
import { progressMeter } from '../host/progress-meter';
import { inputName } from '../inputs/stored-tensor';
import type { Progress } from '../reports/job';
import type {
  MergeReport,
  MergeRequest,
  ShardComparison,
  VerifyReport,
  VerifyRequest,
} from '../reports/merge';
import { hashLike } from '../sources/tree-hash';
import { checkWritten, isAsWritten } from '../write/output-commit';
import { compareStored, type ShardWatch } from './stored-comparison';

/**
 * Hashes every file that was written, then merges again, by `merge`, and compares tensor by tensor.
 * @throws AmalgamError `NotFound` when the model has no shards of those names, and what the merge throws
 */
export async function runVerify(
  request: VerifyRequest,
  merge: (request: MergeRequest, watch: ShardWatch) => Promise<MergeReport>,
  models: OpenModels,
  signal: AbortSignal,
  onProgress: (progress: Progress) => void,
): Promise<VerifyReport> {
  const begun = performance.now();
  const written = (await models.open(request.merged)).folder.files;
  const meter = progressMeter<Progress>(onProgress, () => undefined);
  meter.begin(
    'hashing',
    written.reduce((sum, { byteLength }) => sum + byteLength, 0),
    0,
  );
  const files = await checkWritten(written, signal, ({ byteLength, path }) =>
    meter.advance(byteLength, path),
  );
  const { recipe, engine } = request;
  const shards: ShardComparison[] = [];
  const watch = compareStored(
    request.merged,
    (file) => storedShard(models, request.merged, file),
    (comparison) => shards.push(comparison),
  );
  const again = await merge({ recipe, engine, destination: { kind: 'nowhere' } }, watch);
  const changedInputs: string[] = [];
  for (const { id, file, hash } of again.inputs) {
    const name = inputName(id, file);
    const named = request.inputs[name];
    if (named === undefined || named === hash) continue;
    // one that was on the Hub may be a local file now
    const source = models.file(id, file).file.open();
    if ((await hashLike(named, source, signal)) !== named) changedInputs.push(name);
  }
  return {
    agrees:
      shards.every(({ isHeaderSame, differing }) => isHeaderSame && differing.length === 0) &&
      (files === null || isAsWritten(files)),
    files,
    shards,
    changedInputs,
    engine: again.engine,
    seconds: (performance.now() - begun) / 1000,
  };
}

function storedShard(models: OpenModels, merged: string, file: string) {
  try {
    return models.file(merged, file).file;
  } catch (cause) {
    throw new AmalgamError(
      'NotFound',
      `${merged} has no ${file}, which its recipe writes.`,
      'The folder is incomplete, or its shards were rewritten.',
      { cause },
    );
  }
}
