import { open, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AmalgamError } from '../errors';
import { HASHES_FILE, parseHashes } from '../formats/output-hashes';
import type { Recipe } from '../formats/recipe';
import { parseRecipe } from '../formats/recipe-yaml';
import { headerLength, parseSafetensorsHeader } from '../formats/safetensors-header';
import { parseJson } from '../formats/strict-json';

/**
 * The recipe that a merged model carries in the metadata of its first shard, and the input hashes there and beside it.
 * @throws AmalgamError `NotFound` when the folder has no shard, `RecipeInvalid` when it was not merged by Amalgam
 */
export async function readMergedMetadata(
  folder: string,
): Promise<{ recipe: Recipe; inputs: Record<string, string> }> {
  const files: string[] = await readdir(folder).catch(() => []);
  const shard = files.filter((name) => name.endsWith('.safetensors')).sort()[0];
  if (shard === undefined) {
    const gguf = files.find((name) => name.endsWith('.gguf'));
    throw gguf === undefined
      ? new AmalgamError(
          'NotFound',
          `${folder} has no safetensors file.`,
          'Give the folder of a merged model.',
        )
      : new AmalgamError(
          'NotFound',
          `${folder} holds GGUF alone (${gguf}), and what is verified are safetensors.`,
          'Use verify --hashes for its bytes; or merge its mergekit_config.yml again and compare both amalgam-hashes.json: the same recipe gives the same bytes.',
        );
  }
  const metadata = await readMetadata(join(folder, shard));
  const text = metadata.get('amalgam_recipe');
  const parsed = text === undefined ? undefined : parseRecipe(text);
  if (!parsed?.recipe) {
    throw new AmalgamError(
      'RecipeInvalid',
      `${shard} in ${folder} carries no recipe of Amalgam.`,
      'Only models merged by Amalgam can be verified; their metadata holds the recipe.',
    );
  }
  const inputs = metadata.get('amalgam_inputs');
  const beside = files.includes(HASHES_FILE) ? await readFile(join(folder, HASHES_FILE), 'utf8') : undefined;
  return {
    recipe: parsed.recipe,
    inputs: {
      ...(inputs === undefined ? {} : (parseJson(inputs, 'amalgam_inputs') as Record<string, string>)),
      ...(beside === undefined ? {} : parseHashes(beside).inputs),
    },
  };
}

async function readMetadata(path: string): Promise<ReadonlyMap<string, string>> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    const first = new Uint8Array(8);
    await file.read(first, 0, 8, 0);
    const header = new Uint8Array(headerLength(first, size, path));
    await file.read(header, 0, header.length, 8);
    return parseSafetensorsHeader(header, size, path).metadata;
  } finally {
    await file.close();
  }
}
