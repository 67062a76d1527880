import { open, readdir, readFile } from 'node:fs/promises';
import { join, resolve, sep } from 'node:path';
import { AmalgamError } from '../../errors';
import { displayName } from '../../formats/names';
import { HASHES_FILE, parseHashes } from '../../formats/output-hashes';
import type { Recipe } from '../../formats/recipe';
import { repositoriesRead } from '../../formats/recipe-models';
import { parseRecipe } from '../../formats/recipe-yaml';
import { headerLength, parseSafetensorsHeader } from '../../formats/safetensors-header';
import { parseJson } from '../../formats/strict-json';
import { checkWritten, isAsWritten } from '../../write/output-commit';
import { defineVerb, engineOptions, usage } from '../arguments';
import { diskFolder, listFolder } from '../folder-listing';
import { locateModels, openJob } from '../job';
import { verifyText, withProgress, writtenText } from '../print';

export const verifyVerb = defineVerb({
  name: 'verify',
  subjects: ['merged'],
  about:
    'Hashes every file and compares with amalgam-hashes.json, then repeats the merge that the metadata describe and compares the bytes. Exit code 1 when they differ. --hashes leaves out the merge. The metadata names models, not folders: they are looked up beside the merged folder, or where the recipe of --recipe has them; that it is another recipe is said.',
  options: {
    recipe: { kind: 'text', argument: 'FILE', help: 'A recipe that has the models where they are.' },
    hashes: { kind: 'boolean', help: 'Hashes the files alone; no model is needed.', default: false },
    ...engineOptions,
  },

  check({ options: { hashes, recipe } }) {
    if (hashes && recipe !== undefined) throw usage('verify --hashes merges nothing: it takes no --recipe.');
  },

  async run({ subjects: [merged = ''], options }, place) {
    const { workingFolder } = place;
    const folder = resolve(workingFolder, merged);
    if (options.hashes) {
      const { files } = await listFolder(folder);
      const written = await checkWritten(diskFolder(merged, files.values()).files);
      if (written === null) throw noHashes(folder);
      await place.write(`${writtenText(written)}\n`);
      return isAsWritten(written) ? 0 : 1;
    }
    const metadata = await readMergedMetadata(folder);
    const { inputs } = metadata;
    const given = options.recipe;
    const { recipe, published, differs } =
      given === undefined
        ? { recipe: metadata.recipe }
        : await locateModels(metadata.recipe, resolve(workingFolder, given), workingFolder);
    if (differs !== undefined) {
      place.say(
        `warning: ${displayName(given!)} is not the recipe that was merged (first in “${displayName(differs.trim())}”): it only says where the models are.`,
      );
    }
    const job = await openJob(recipe, folder, place, options, repositoriesRead, published).catch(
      (thrown: unknown) => {
        throw withCure(thrown, merged, given);
      },
    );
    await job.worker.listModel(folder);
    await job.calls.openDisk(folder, folder);
    const request = { merged: folder, recipe: job.recipe, inputs, engine: options.engine };
    const report = await withProgress((print) => job.calls.verify(request, print));
    await place.write(`${verifyText(report)}\n`);
    return report.agrees ? 0 : 1;
  },
});

/** A model that was not found: its folder may be known to the recipe that was merged, which the error then names first. */
function withCure(thrown: unknown, merged: string, given: string | undefined) {
  if (!(thrown instanceof AmalgamError) || !['NotFound', 'Offline', 'Unauthorized'].includes(thrown.code))
    return thrown;
  const cure =
    given === undefined
      ? `The metadata names models without their folders: give the recipe that was merged, amalgam verify ${displayName(merged)} --recipe recipe.yml.`
      : `${displayName(given)} does not say where this model is: give the recipe that was merged.`;
  return new AmalgamError(thrown.code, thrown.message, `${cure} ${thrown.hint}`, { cause: thrown });
}

function noHashes(folder: string): AmalgamError {
  return new AmalgamError(
    'NotFound',
    `${folder} has no ${HASHES_FILE}, which says what was written.`,
    'Leave out --hashes: the merge is then repeated and its bytes compared.',
  );
}

/**
 * The recipe that a merged model carries in the metadata of its first shard, and the input hashes there and beside it.
 * @throws AmalgamError `NotFound` when the folder has no shard, `RecipeInvalid` when it was not merged by Amalgam
 */
async function readMergedMetadata(
  folder: string,
): Promise<{ recipe: Recipe; inputs: Record<string, string> }> {
  // those of an image model lie in the folders of its parts
  const files: string[] = await readdir(folder, { recursive: true }).catch(() => []);
  const top = (name: string) => (name.includes(sep) ? 1 : 0);
  const [shard] = files
    .filter((name) => name.endsWith('.safetensors'))
    .sort((a, b) => top(a) - top(b) || (a < b ? -1 : 1));
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
