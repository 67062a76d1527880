import { AmalgamError } from '../errors';
import { nameInFile } from '../formats/module-names';
import type { OpenModels } from '../host/models';
import { progressMeter } from '../host/progress-meter';
import { readHeader } from '../inputs/header';
import { inputName } from '../inputs/stored-tensor';
import type { Progress } from '../reports/job';
import type {
  MergeReport,
  MergeRequest,
  ShardComparison,
  VerifyReport,
  VerifyRequest,
} from '../reports/merge';
import type { ModelFile } from '../sources/model-folder';
import { giveBack } from '../sources/spare-arrays';
import { hashLike } from '../sources/tree-hash';
import { checkWritten, isAsWritten } from '../write/output-commit';
import type { FilePlan } from '../write/shard-plan';

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

// Comparison of shards that are merged again with those that are stored.

/** Called when a shard begins; the function it returns, with the bytes of its tensors and where in the file they go. */
export type ShardWatch = (
  shard: FilePlan,
) => Promise<(bytes: Uint8Array<ArrayBuffer>, at: number) => Promise<void>>;

/**
 * Compares tensor by tensor, wherever a tensor stands in the stored file.
 * @param merged the model they belong to, for messages
 * @param stored a stored shard
 * @param onShard told how a shard compares, when it is begun; its tensors follow while they come
 */
function compareStored(
  merged: string,
  stored: (file: string) => ModelFile,
  onShard: (comparison: ShardComparison) => void,
): ShardWatch {
  return async ({ file, header, tensors }) => {
    const model = stored(file);
    const source = model.open();
    const there = await readHeader(model, merged);
    const first = await source.read(0, Math.min(header.byteLength, source.byteLength));
    const comparison: ShardComparison = { file, isHeaderSame: isSame(first, header), differing: [] };
    onShard(comparison);
    let end = header.byteLength;
    const placed = tensors.map(({ name, byteLength }) => {
      end += byteLength;
      return { name, begin: end - byteLength, end };
    });
    const differing = new Set<string>();
    return async (bytes, at) => {
      const last = at + bytes.byteLength;
      for (const tensor of placed.filter(({ begin, end }) => begin < last && at < end)) {
        const [from, to] = [Math.max(at, tensor.begin), Math.min(last, tensor.end)];
        const old = there.get(nameInFile(tensor.name));
        const isThere = old !== undefined && old.end - old.begin === tensor.end - tensor.begin;
        if (differing.has(tensor.name)) continue;
        const shift = isThere ? old.begin - tensor.begin : 0;
        const read = isThere ? await source.read(from + shift, to + shift) : undefined;
        if (!read || !isSame(read, bytes.subarray(from - at, to - at))) differing.add(tensor.name);
        if (read) giveBack(read.buffer);
      }
      comparison.differing = placed.flatMap(({ name }) => (differing.has(name) ? [name] : []));
    };
  };
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}
