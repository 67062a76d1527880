import { AmalgamError } from '../../errors';
import { buildShardIndex, SHARD_INDEX } from '../../formats/shard-index';
import { bufferSource } from '../../sources/byte-source';
import type { ModelFile, ModelFolder } from '../../sources/model-folder';
import { indexedFiles, type ShardPlan } from '../../write/shard-plan';
import type { Plan } from './plan';

/**
 * The output of a clean plan as a folder that can be opened before it exists, to plan what is merged from it: headers
 * and small files are known, weights are not. The headers lack the hashes of the inputs, so the offsets of the weights
 * are not yet those of the real files.
 *
 * @param name of the folder
 * @param file a file of an opened model, for the small files that are copied
 */
export function plannedOutput(
  name: string,
  plan: Plan,
  file: (folder: string, path: string) => ModelFile,
): ModelFolder {
  const shards = plan.shards.map((shard) => plannedShard(name, shard));
  const small = plan.extras.map(({ path, content }): ModelFile => {
    if ('text' in content) return textFile(path, content.text);
    return { ...file(content.folder, content.file), path };
  });
  const indexed = plan.places ? [] : indexedFiles(plan.shards);
  const entries = indexed.flatMap((s) => s.tensors.map((t) => [t.name, s.file] as const));
  const index =
    indexed.length > 0 ? [textFile(SHARD_INDEX, buildShardIndex(entries, plan.bytesToWrite))] : [];
  return { path: name, origin: { kind: 'local' }, files: [...shards, ...small, ...index] };
}

function plannedShard(name: string, { file, header, byteLength }: ShardPlan): ModelFile {
  const known = bufferSource(header, `${name}/${file}`);
  return {
    path: file,
    byteLength,
    open: () => ({
      byteLength,
      async read(begin, end, signal) {
        if (begin >= header.length) throw notYet(name);
        const bytes = new Uint8Array(end - begin);
        bytes.set(await known.read(begin, Math.min(end, header.length), signal));
        return bytes;
      },
    }),
  };
}

function textFile(path: string, text: string): ModelFile {
  const bytes = new TextEncoder().encode(text);
  return { path, byteLength: bytes.length, open: () => bufferSource(bytes, path) };
}

function notYet(name: string): AmalgamError {
  return new AmalgamError(
    'Internal',
    `The weights of ${name} were asked for before they were merged.`,
    'Please report this.',
  );
}
