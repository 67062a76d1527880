/** The GGUF files that a folder holds in place of safetensors. */
import { AmalgamError } from '../errors';
import { counted } from '../formats/quantity';
import { SHARD_INDEX } from '../formats/shard-index';
import { throwIfCanceled } from '../sources/cancellation';
import type { ModelFile, ModelFolder } from '../sources/model-folder';
import { nameSome } from './problems';

const NAMED = /\.gguf$/i;
const PART = /-\d{5}-of-\d{5}\.gguf$/i;
/** The part of a model that reads images, which llama.cpp has in a file of its own. */
const PROJECTOR = /(?:^|[-_.])mmproj(?:[-_.]|$)/i;
/** Ollama names its files by their hash, and others by nothing that tells what they are. */
const UNNAMED = /^sha256-[0-9a-f]{64}$|^[^.]+$/;
const MOST_UNNAMED = 64;
const MAGIC = 'GGUF';

/**
 * One model's files in their order; undefined for a folder of other weights.
 * @throws AmalgamError `NotFound` where the folder holds several models
 */
export async function ggufFilesOf(
  { files, origin }: ModelFolder,
  path: string,
  signal?: AbortSignal,
): Promise<ModelFile[] | undefined> {
  const top = files.filter((file) => !file.path.includes('/'));
  if (top.some((file) => file.path === SHARD_INDEX || file.path.endsWith('.safetensors'))) return undefined;
  const named = top.filter((file) => NAMED.test(file.path) && !PROJECTOR.test(file.path));
  const found = named.length > 0 || origin.kind === 'hub' ? named : await byMagic(top, signal);
  const models = new Map<string, ModelFile[]>();
  for (const file of found) {
    const model = file.path.replace(PART, '');
    models.set(model, [...(models.get(model) ?? []), file]);
  }
  const [first] = models.values();
  if (models.size > 1) {
    throw new AmalgamError(
      'NotFound',
      `${path} holds ${counted(models.size, 'model')} in GGUF files: ${nameSome([...models.keys()])}.`,
      'Give the file that is meant, alone: by its path, by itself in the studio, or as owner/name/file.gguf on the Hub.',
    );
  }
  return first?.toSorted((a, b) => (a.path < b.path ? -1 : 1));
}

async function byMagic(top: readonly ModelFile[], signal?: AbortSignal): Promise<ModelFile[]> {
  const unnamed = top.filter(({ path, byteLength }) => UNNAMED.test(path) && byteLength > MAGIC.length);
  const found: ModelFile[] = [];
  for (const file of unnamed.slice(0, MOST_UNNAMED)) {
    throwIfCanceled(signal);
    if (new TextDecoder().decode(await file.open().read(0, MAGIC.length, signal)) === MAGIC) found.push(file);
  }
  return found;
}
