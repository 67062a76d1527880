import { stat } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { version } from '../../../package.json';
import { AmalgamError } from '../../errors';
import { displayName, printableJson } from '../../formats/names';
import { HASHES_FILE, parseHashes } from '../../formats/output-hashes';
import type { Recipe } from '../../formats/recipe';
import { formatRecipe } from '../../formats/recipe-format';
import { repositoriesRead } from '../../formats/recipe-models';
import { parseRecipe } from '../../formats/recipe-yaml';
import { type PublishedRecipe, publishedRecipe } from '../../sources/published-recipe';
import { checkWritten, isAsWritten } from '../../write/output-commit';
import { defineVerb, engineOptions, type Place, usage } from '../arguments';
import { diskFolder, listFolder } from '../folder-listing';
import { changeCard, readTextFile } from '../input-files';
import { askHub, locateModels, openJob, type Where } from '../job';
import { withProgress } from '../print';
import { verifiedMerge, verifyText, withVerification, writtenText } from '../verify-text';

export const verifyVerb = defineVerb({
  name: 'verify',
  subjects: ['model'],
  about:
    'Hashes every file and compares with amalgam-hashes.json, then repeats the merge that the metadata, or its mergekit_config.yml, describe and compares the bytes; of a model on the Hub, by ranges. Exit code 1 when they differ. --hashes leaves out the merge; --json has the tree hashes and, of Hub models, the family with its licenses, which --card puts into a model card. The metadata names models, not folders: they are looked up beside the merged folder, or where the recipe of --recipe has them; that it is another recipe is said.',
  options: {
    recipe: { kind: 'text', argument: 'FILE', help: 'A recipe that has the models where they are.' },
    hashes: { kind: 'boolean', help: 'Hashes the files alone; no model is needed.', default: false },
    json: { kind: 'boolean', help: 'The result as JSON, with the tree hashes.', default: false },
    card: { kind: 'text', argument: 'README.md', help: 'A model card that takes the result.' },
    stream: { kind: 'boolean', help: 'Keeps no inputs, as merge --stream.', default: false },
    ...engineOptions,
  },

  check({ options: { hashes, recipe, json, card } }) {
    if (hashes && (recipe !== undefined || json || card !== undefined))
      throw usage('verify --hashes merges nothing: it takes no --recipe, --json or --card.');
  },

  async run({ subjects: [merged = ''], options }, place) {
    const { workingFolder } = place;
    const folder = resolve(workingFolder, merged);
    const card = options.card === undefined ? undefined : resolve(workingFolder, options.card);
    if (card !== undefined) await readTextFile(card, workingFolder);
    if (options.hashes) {
      const { files } = await listFolder(folder);
      const written = await checkWritten(diskFolder(merged, files.values()).files);
      if (written === null) throw noHashes(folder);
      await place.write(`${writtenText(written)}\n`);
      return isAsWritten(written) ? 0 : 1;
    }
    const isHere = await stat(folder).then(
      () => true,
      () => false,
    );
    const said = await (isHere ? saidHere(merged, folder) : saidOnHub(merged, place, options));
    const { recipe: own, inputs, isForeign } = said;
    const given = options.recipe;
    const { recipe, published, differs } =
      given === undefined
        ? { recipe: own }
        : await locateModels(own, resolve(workingFolder, given), workingFolder);
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
    if (isHere) await job.worker.listModel(folder);
    const { ref } = await (isHere ? job.calls.openDisk(folder, folder) : job.calls.openHub(merged));
    const request = {
      merged: ref,
      recipe: job.recipe,
      inputs,
      isForeign,
      engine: options.engine,
      stream: options.stream,
    };
    const report = await withProgress((print) => job.calls.verify(request, print));
    const name = isHere ? basename(folder) : displayName(ref);
    const result = verifiedMerge(report, { model: name, recipe: formatRecipe(job.recipe), version });
    await place.write(options.json ? `${printableJson(result)}\n` : `${verifyText(report)}\n`);
    if (card !== undefined) await changeCard(card, (text) => withVerification(text, report, result));
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

/** What a merged model says of its recipe. */
interface Said {
  recipe: Recipe;
  inputs: Record<string, string>;
  /** Another program wrote it. */
  isForeign: boolean;
}

/** @throws AmalgamError `NotFound` for GGUF alone, `RecipeInvalid`, and what reading throws */
async function saidHere(merged: string, folder: string): Promise<Said> {
  const { files } = await listFolder(folder);
  const names = [...files.keys()];
  const gguf = names.find((name) => name.endsWith('.gguf'));
  if (gguf !== undefined && !names.some((name) => name.endsWith('.safetensors'))) {
    throw new AmalgamError(
      'NotFound',
      `${folder} holds GGUF alone (${gguf}), and what is verified are safetensors.`,
      'Use verify --hashes for its bytes; or merge its mergekit_config.yml again and compare both amalgam-hashes.json: the same recipe gives the same bytes.',
    );
  }
  const opened = diskFolder(merged, files.values());
  const said = readSaid(merged, await publishedRecipe(opened));
  const beside = opened.files.find(({ path }) => path === HASHES_FILE)?.open();
  if (!beside) return said;
  const text = new TextDecoder().decode(await beside.read(0, beside.byteLength));
  return { ...said, inputs: { ...said.inputs, ...parseHashes(text).inputs } };
}

async function saidOnHub(merged: string, place: Place, where: Where): Promise<Said> {
  return readSaid(merged, await askHub(place, where, (calls) => calls.publishedRecipe(merged)));
}

/** @throws AmalgamError `RecipeInvalid` */
function readSaid(merged: string, { text, from, inputs }: PublishedRecipe): Said {
  const { recipe, problems } = parseRecipe(text);
  if (recipe && problems.length === 0) return { recipe, inputs, isForeign: from !== 'metadata' };
  const [first] = problems;
  throw new AmalgamError(
    'RecipeInvalid',
    `The recipe of ${displayName(merged)} (${from}) cannot be read${first ? `: line ${first.line}: ${first.message}` : '.'}`,
    first?.hint ?? 'Give the recipe that was merged by --recipe.',
  );
}
