import { AmalgamError } from '../errors';
import { checkTensorName, compareCodePoints, displayName, MAX_TENSOR_NAME, safeRelativePath } from './names';
import { MAX_TENSORS } from './safetensors-header';
import {
  endJson,
  type JsonCursor,
  type JsonRules,
  limit,
  openJson,
  peekKind,
  readObject,
  readString,
  skipValue,
} from './strict-json';

/** Name of the shard index, which a folder of several shards needs and which is written last. */
export const SHARD_INDEX = 'model.safetensors.index.json';

/** Longest index text: hf.js stops at 250 MB; the index of the largest published model is below 10 MB. */
const MAX_INDEX_LENGTH = 250_000_000;
/** Most shards: at 2 GB each this is 20 TB. */
export const MAX_SHARDS = 10_000;

const INDEX_RULES: JsonRules = {
  code: 'JsonInvalid',
  maxLength: MAX_INDEX_LENGTH,
  maxString: MAX_TENSOR_NAME,
};

/**
 * Tensor name → relative file name of a shard index, in its order. Whatever else is in it says nothing that the headers do not.
 *
 * @throws AmalgamError `JsonInvalid`, `DuplicateKey` (a tensor listed twice), `LimitExceeded`, `IndexInvalid`,
 *   `UnsafePath`, `UnsafeName`, `NotSafetensors` (an index of PyTorch pickles)
 */
export function parseShardIndex(text: string, fileName: string): Map<string, string> {
  const cursor = openJson(text, fileName, INDEX_RULES);
  if (peekKind(cursor) !== 'object') throw invalid(fileName, 'is not an object');
  let weightMap: Map<string, string> | undefined;
  readObject(cursor, (key) => {
    if (key === 'weight_map') weightMap = readWeightMap(cursor);
    else skipValue(cursor);
  });
  endJson(cursor);
  if (weightMap === undefined || weightMap.size === 0)
    throw invalid(fileName, 'has no weight_map, or an empty one');

  return weightMap;
}

function readWeightMap(cursor: JsonCursor): Map<string, string> {
  const { fileName } = cursor;
  if (peekKind(cursor) !== 'object') throw invalid(fileName, 'has a weight_map that is not an object');
  const weightMap = new Map<string, string>();
  // One string per shard, not one per tensor.
  const files = new Map<string, string>();
  readObject(cursor, (tensor) => {
    if (weightMap.size === MAX_TENSORS) {
      throw limit(fileName, `names more than ${MAX_TENSORS} tensors`);
    }
    checkTensorName(tensor, fileName);
    if (peekKind(cursor) !== 'string') throw invalid(fileName, `gives “${displayName(tensor)}” no file name`);
    const file = readString(cursor);
    if (!files.has(file)) {
      checkShard(file, fileName);
      if (files.size === MAX_SHARDS) {
        throw limit(fileName, `names more than ${MAX_SHARDS} files`);
      }
      files.set(file, file);
    }
    weightMap.set(tensor, files.get(file)!);
  });
  return weightMap;
}

function checkShard(file: string, fileName: string): void {
  safeRelativePath(file);
  if (file.endsWith('.safetensors')) return;
  throw new AmalgamError(
    'NotSafetensors',
    `${displayName(fileName)} points to “${displayName(file)}”, which is not a safetensors file.`,
    'Amalgam reads safetensors only. Find a copy of the model in safetensors, or convert it with transformers.',
  );
}

/**
 * Text of a shard index in the form transformers writes: two spaces, sorted by tensor name.
 * @param entries tensor name and file name of every tensor
 * @param totalSize bytes of all tensors
 */
export function buildShardIndex(
  entries: Iterable<readonly [tensor: string, file: string]>,
  totalSize: number,
): string {
  const lines = [...entries]
    .sort(([a], [b]) => compareCodePoints(a, b))
    .map(([tensor, file]) => `    ${JSON.stringify(tensor)}: ${JSON.stringify(file)}`);
  return `{\n  "metadata": {\n    "total_size": ${totalSize}\n  },\n  "weight_map": {\n${lines.join(',\n')}\n  }\n}\n`;
}

function invalid(fileName: string, what: string): AmalgamError {
  return new AmalgamError(
    'IndexInvalid',
    `${displayName(fileName)} ${what}.`,
    'The index is damaged or was not made by transformers. Get it again.',
  );
}
