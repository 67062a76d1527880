import { AmalgamError } from '../errors';
import { familyOf, licenseFindings } from '../formats/model-family';
import type { Recipe } from '../formats/recipe';
import { repositoriesRead } from '../formats/recipe-models';
import { parseSafetensorsHeader, type StoredTensor } from '../formats/safetensors-header';
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
import type { ByteSource } from '../sources/byte-source';
import { hubCommit, type ModelFile, type ModelFolder } from '../sources/model-folder';
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
  const { recipe, engine, merged, isForeign = false, stream = false } = request;
  const { folder } = await models.open(merged);
  // on the Hub nothing but the weights is read, and these once
  const isHere = hubCommit(folder.origin) === undefined;
  const isHashed = ({ path }: ModelFile) => isHere || !path.endsWith('.safetensors');
  const meter = progressMeter<Progress>(onProgress, () => undefined);
  meter.begin(
    'hashing',
    folder.files.filter(isHashed).reduce((sum, { byteLength }) => sum + byteLength, 0),
    0,
  );
  const onFile = ({ byteLength, path }: ModelFile) => meter.advance(byteLength, path);
  const files = await checkWritten(folder.files, signal, onFile, isHashed);
  const shards: ShardComparison[] = [];
  const watch = await compareStored(folder, isForeign, (comparison) => shards.push(comparison));
  const again = await merge({ recipe, engine, stream, destination: { kind: 'nowhere' } }, watch);
  const changedInputs: string[] = [];
  for (const { id, file, hash } of again.inputs) {
    const name = inputName(id, file);
    const named = request.inputs[name];
    if (named === undefined || named === hash) continue;
    // one that was on the Hub may be a local file now
    const source = models.file(id, file).file.open();
    if ((await hashLike(named, source, signal)) !== named) changedInputs.push(name);
  }
  const read = Object.fromEntries(again.inputs.map(({ id, file, hash }) => [inputName(id, file), hash]));
  return {
    agrees:
      shards.every(({ isHeaderSame, differing }) => isHeaderSame !== false && differing.length === 0) &&
      (files === null || isAsWritten(files)),
    files,
    shards,
    outputs: Object.fromEntries(again.shards.map(({ file, hash }) => [file, hash])),
    inputs: read,
    changedInputs,
    uncheckedInputs: Object.keys(request.inputs).filter((name) => read[name] === undefined),
    ...(await licensesOf(folder, recipe, models)),
    engine: again.engine,
    seconds: (performance.now() - begun) / 1000,
  };
}

/** The family of the merge and of the models it was made from, and what their licenses say of its own. */
async function licensesOf(
  { family: [own] = [], path }: ModelFolder,
  recipe: Recipe,
  models: OpenModels,
): Promise<Pick<VerifyReport, 'family' | 'licenses'>> {
  const folders = [];
  for (const name of repositoriesRead(recipe)) folders.push((await models.open(name)).folder);
  const merged = own ?? { id: path, parents: [] };
  const parents = folders.flatMap(({ family }) => family?.[0]?.id ?? []);
  const family = familyOf([{ family: [{ ...merged, parents }] }, ...folders]);
  if (parents.length === 0) return { family: [], licenses: [] };
  const name = merged.id.replace(/^.*\//, '');
  return { family, licenses: licenseFindings(family, parents, { ...merged, name }) };
}

// Comparison of shards that are merged again with those that are stored.

/** Called when a shard begins; the function it returns, with the bytes of its tensors and where in the file they go. */
export type ShardWatch = (
  shard: FilePlan,
) => Promise<(bytes: Uint8Array<ArrayBuffer>, at: number) => Promise<void>>;

/**
 * Compares tensor by tensor, whichever file of the model a tensor stands in.
 * @param isForeign whether another program wrote it: headers are not compared then, nor names of files
 * @param onShard told how a shard compares, when it is begun; its tensors follow while they come
 * @throws AmalgamError `NotFound` where a file is missing that Amalgam writes
 */
async function compareStored(
  { path: merged, files }: ModelFolder,
  isForeign: boolean,
  onShard: (comparison: ShardComparison) => void,
): Promise<ShardWatch> {
  const stored = new Map<string, { tensor: StoredTensor; source: ByteSource }>();
  // by its file first: the parts of an image model may call theirs alike
  const key = (file: string, name: string) => `${file}\n${name}`;
  for (const file of files.filter(({ path }) => path.endsWith('.safetensors'))) {
    const source = file.open();
    for (const [name, tensor] of await readHeader(file, merged))
      for (const known of [name, key(file.path, name)]) stored.set(known, { tensor, source });
  }
  const isSameHeader = async (file: string, header: Uint8Array) => {
    const source = files.find(({ path }) => path === file)?.open();
    if (!source) throw missing(merged, file);
    return isSame(await source.read(0, Math.min(header.byteLength, source.byteLength)), header);
  };
  return async ({ file, header, byteLength }) => {
    const isHeaderSame = isForeign ? null : await isSameHeader(file, header);
    const placed = [...parseSafetensorsHeader(header.subarray(8), byteLength, file).tensors.values()];
    const comparison: ShardComparison = { file, isHeaderSame, tensors: placed.length, differing: [] };
    onShard(comparison);
    const differing = new Map<string, number | null>();
    return async (bytes, at) => {
      const last = at + bytes.byteLength;
      for (const tensor of placed.filter(({ begin, end }) => begin < last && at < end)) {
        const [from, to] = [Math.max(at, tensor.begin), Math.min(last, tensor.end)];
        const old = stored.get(key(file, tensor.name)) ?? stored.get(tensor.name);
        const before = differing.get(tensor.name);
        if (!old || !isAlike(old.tensor, tensor)) differing.set(tensor.name, null);
        else if (before !== null) {
          const shift = old.tensor.begin - tensor.begin;
          const read = await old.source.read(from + shift, to + shift);
          const again = bytes.subarray(from - at, to - at);
          if (!isSame(read, again)) {
            const steps = stepsApart(read, again, tensor.dtype);
            differing.set(tensor.name, steps === null ? null : Math.max(before ?? 0, steps));
          }
          giveBack(read.buffer);
        }
      }
      comparison.differing = placed.flatMap(({ name }) => {
        const steps = differing.get(name);
        return steps === undefined ? [] : [{ name, steps }];
      });
    };
  };
}

function isAlike(a: StoredTensor, b: StoredTensor): boolean {
  return a.dtype === b.dtype && a.shape.join() === b.shape.join();
}

/**
 * The most steps of a dtype between two elements: 1 where they are neighbors among its numbers, 0 where a zero has another sign.
 * Null for a dtype whose numbers are not compared.
 */
function stepsApart(
  a: Uint8Array<ArrayBuffer>,
  b: Uint8Array<ArrayBuffer>,
  dtype: StoredTensor['dtype'],
): number | null {
  if (dtype !== 'F32' && dtype !== 'F16' && dtype !== 'BF16') return null;
  const [width, sign] = dtype === 'F32' ? [4, 2 ** 31] : [2, 2 ** 15];
  const [left, right] = [a, b].map((bytes) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  // by their order on the line of numbers: below zero the bits count backwards
  const placeOf = (view: DataView, at: number) => {
    const bits = width === 4 ? view.getUint32(at, true) : view.getUint16(at, true);
    return bits < sign ? bits : sign - bits;
  };
  let most = 0;
  for (let at = 0; at < a.length; at += width) {
    most = Math.max(most, Math.abs(placeOf(left!, at) - placeOf(right!, at)));
  }
  return most;
}

function missing(merged: string, file: string): AmalgamError {
  return new AmalgamError(
    'NotFound',
    `${merged} has no ${file}, which its recipe writes.`,
    'The folder is incomplete, or its shards were rewritten.',
  );
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}
