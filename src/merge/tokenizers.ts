/** Whether the models speak with the same tokenizer. Merging weights of different vocabularies gives gibberish. */
import { findFile, type ModelFile } from '../sources/model-folder';
import type { Checkpoint } from './checkpoint';
import { nameSome, type Problems } from './problems';

const TOKENIZER = 'tokenizer.json';
/** Most bytes of a tokenizer.json that are compared: twice the largest published one. */
const MAX_TOKENIZER_BYTES = 64 * 2 ** 20;

/**
 * Warns of checkpoints whose tokenizer.json is not the reference's. Hub files are told apart by their hashes; files
 * are read only when both have the same length and no hash to compare.
 */
export async function compareTokenizers(
  reference: Checkpoint,
  others: readonly Checkpoint[],
  problems: Problems,
  signal?: AbortSignal,
): Promise<void> {
  const file = findFile(reference.folder, TOKENIZER);
  if (!file) return;
  const different: string[] = [];
  for (const { folder, path } of others) {
    const other = findFile(folder, TOKENIZER);
    if (other && path !== reference.path && !(await sameContent(file, other, signal))) different.push(path);
  }
  if (different.length === 0) return;
  problems.add({
    severity: 'warning',
    code: 'TokenizersDiffer',
    message: `${nameSome(different)} ${different.length === 1 ? 'has' : 'have'} another tokenizer.json than ${reference.path}.`,
    remedy:
      'When only settings differ, this is harmless. When tokens stand for other words, the merged model writes gibberish: check before you merge.',
  });
}

async function sameContent(a: ModelFile, b: ModelFile, signal?: AbortSignal): Promise<boolean> {
  if (a.byteLength !== b.byteLength) return false;
  if (a.sha256 !== undefined && b.sha256 !== undefined) return a.sha256 === b.sha256;
  if (a.gitSha1 !== undefined && b.gitSha1 !== undefined) return a.gitSha1 === b.gitSha1;
  if (a.byteLength > MAX_TOKENIZER_BYTES) return false;
  const [x, y] = await Promise.all([a, b].map((file) => file.open().read(0, file.byteLength, signal)));
  return x!.every((byte, i) => byte === y![i]);
}
