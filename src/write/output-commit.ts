import { HASHES_FILE, hashesText, parseHashes } from '../formats/output-hashes';
import type { WrittenFiles } from '../reports/merge';
import type { ModelFile } from '../sources/model-folder';
import { beginLeaves, hashLike } from '../sources/tree-hash';
import type { Destination } from './destination';

/**
 * Commits an output after a file with the hashes of its inputs and its files.
 * @param inputs hashes of the files that were read, by the name that the recipe has for them
 * @throws what the destination throws
 */
export async function commitOutput(
  destination: Destination,
  inputs: Readonly<Record<string, string>>,
): Promise<void> {
  const outputs = await destination.written?.();
  if (outputs) await writeWhole(destination, HASHES_FILE, hashesText(inputs, Object.fromEntries(outputs)));
  await destination.commit();
}

/**
 * Every file of an output beside the list of hashes that was written last; hidden files, which hosts and systems add, are
 * left out. Null where there is no list.
 * @param onFile called with a file that was hashed
 * @param isHashed whether a file is hashed; of one that is not, its name is enough
 * @throws JsonInvalid for a list that is none, and what reading throws
 */
export async function checkWritten(
  files: readonly ModelFile[],
  signal?: AbortSignal,
  onFile?: (file: ModelFile) => void,
  isHashed: (file: ModelFile) => boolean = () => true,
): Promise<WrittenFiles | null> {
  const list = files.find(({ path }) => path === HASHES_FILE)?.open();
  if (!list) return null;
  const { outputs } = parseHashes(new TextDecoder().decode(await list.read(0, list.byteLength, signal)));
  const there = files.filter(({ path }) => path !== HASHES_FILE && !/(^|\/)\./.test(path));
  const names = new Set(there.map(({ path }) => path));
  const checked: WrittenFiles = {
    listed: Object.keys(outputs).length,
    missing: Object.keys(outputs).filter((path) => !names.has(path)),
    differing: [],
    unlisted: [],
  };
  for (const file of there) {
    if (!Object.hasOwn(outputs, file.path)) checked.unlisted.push(file.path);
    else if (isHashed(file)) {
      const hash = outputs[file.path]!;
      if ((await hashLike(hash, file.open(), signal)) !== hash) checked.differing.push(file.path);
    }
    if (isHashed(file)) onFile?.(file);
  }
  return checked;
}

export function isAsWritten({ missing, differing, unlisted }: WrittenFiles): boolean {
  return missing.length + differing.length + unlisted.length === 0;
}

/** Writes a small file as a whole; a text in UTF-8. */
export async function writeWhole(
  destination: Destination,
  path: string,
  content: string | Uint8Array<ArrayBuffer>,
): Promise<void> {
  const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content;
  const hasher = beginLeaves();
  await hasher.update(bytes);
  const sink = await destination.create(path);
  await sink.write(bytes, 0);
  await sink.close(await hasher.leaves(), bytes.byteLength);
}
