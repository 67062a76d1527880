/** How a model was merged, as its own files say. */
import * as v from 'valibot';
import { parseDocument } from 'yaml';
import { AmalgamError } from '../errors';
import type { FamilyMember } from '../formats/model-family';
import { displayName } from '../formats/names';
import { headerLength, parseSafetensorsHeader } from '../formats/safetensors-header';
import { parseJson } from '../formats/strict-json';
import { yamlText } from '../formats/yaml-text';
import { findFile, type ModelFolder } from './model-folder';

export interface PublishedRecipe {
  /** The recipe's YAML. */
  text: string;
  /** What says so: `metadata` of the weights as Amalgam writes them, a file, or `base_model` of the card, which names no method. */
  from: 'metadata' | 'mergekit_config.yml' | 'README.md' | 'base_model';
  /** Hashes of inputs that the metadata has, by their names. */
  inputs: Record<string, string>;
}

/** Most bytes read of a card or a recipe. */
const MOST_BYTES = 1_000_000;
const FRONT = /^---\r?\n((?:[\s\S]*?\n)?)---(?:\r?\n|$)/;
const CODE = /^(`{3,})ya?ml\s*\n([\s\S]*?)^\1\s*$/gm;

/**
 * The recipe of a merge: the metadata of its first shard, mergekit's file, a block of YAML in its card, or else an average of the
 * models that the card names as those it was merged from.
 * @throws AmalgamError `NotFound` where the model says nothing of a merge; what reading throws
 */
export async function publishedRecipe(folder: ModelFolder, signal?: AbortSignal): Promise<PublishedRecipe> {
  const metadata = await firstMetadata(folder, signal);
  const own = metadata?.get('amalgam_recipe');
  if (own !== undefined) {
    const inputs = metadata?.get('amalgam_inputs');
    const known = inputs === undefined ? {} : (parseJson(inputs, 'amalgam_inputs') as Record<string, string>);
    return { text: own, from: 'metadata', inputs: known };
  }
  const written = await smallText(folder, 'mergekit_config.yml', signal);
  if (written !== undefined) return { text: written, from: 'mergekit_config.yml', inputs: {} };
  const card = (await smallText(folder, 'README.md', signal)) ?? '';
  for (const [, , text = ''] of card.matchAll(CODE)) {
    if (/^merge_method:/m.test(text)) return { text, from: 'README.md', inputs: {} };
  }
  const parents = parentsIn(card);
  if (parents.length > 0) {
    const models = parents.map((model) => ({ model, parameters: { weight: 1 } }));
    return { text: yamlText({ merge_method: 'linear', models }), from: 'base_model', inputs: {} };
  }
  throw new AmalgamError(
    'NotFound',
    `${displayName(folder.path)} does not say how it was merged: it has no mergekit_config.yml, and no recipe in its weights or its card.`,
    'It can be used as a model. To check its files by amalgam-hashes.json, where that lies beside them: verify --hashes.',
  );
}

/** Metadata of the first file of weights; undefined where there is none. */
async function firstMetadata(
  { path, files }: ModelFolder,
  signal?: AbortSignal,
): Promise<ReadonlyMap<string, string> | undefined> {
  const weights = files.filter((file) => file.path.endsWith('.safetensors'));
  // those of an image model lie in the folders of its parts
  const depth = (name: string) => (name.includes('/') ? 1 : 0);
  const [first] = weights.sort((a, b) => depth(a.path) - depth(b.path) || (a.path < b.path ? -1 : 1));
  if (!first) return undefined;
  const source = first.open();
  const label = `${path}/${first.path}`;
  const length = headerLength(await source.read(0, 8, signal), source.byteLength, label);
  const header = await source.read(8, 8 + length, signal);
  return parseSafetensorsHeader(header, source.byteLength, label).metadata;
}

async function smallText(
  folder: ModelFolder,
  name: string,
  signal?: AbortSignal,
): Promise<string | undefined> {
  const file = findFile(folder, name);
  if (!file || file.byteLength > MOST_BYTES) return undefined;
  const source = file.open();
  return new TextDecoder().decode(await source.read(0, source.byteLength, signal));
}

/** Models that a card names as those it was merged from: a fine-tune names one base; several are those of a merge. */
function parentsIn(card: string): readonly string[] {
  const { parents, relation } = cardMember('', card);
  return relation === 'merge' || parents.length > 1 ? parents : [];
}

/** A model as the front matter of its card describes it. */
export function cardMember(id: string, card: string): FamilyMember {
  const document = parseDocument(FRONT.exec(card)?.[1] ?? '');
  // what is no YAML names nothing, and no card needs aliases
  const isPlain = document.errors.length === 0 && !/[&*]\w/.test(String(document.contents));
  const read = v.safeParse(frontSchema, isPlain ? document.toJS() : {});
  const front = read.success ? read.output : {};
  const bases = front.base_model ?? [];
  const parents = (Array.isArray(bases) ? bases : [bases]).filter((name) => typeof name === 'string');
  return {
    ...{ id, parents },
    ...(front.base_model_relation && { relation: front.base_model_relation }),
    ...(front.license !== undefined && { license: front.license }),
    ...(front.license_name !== undefined && { licenseName: front.license_name }),
    ...(front.license_link !== undefined && { licenseLink: front.license_link }),
  };
}

/** A field of another kind says nothing. */
const optionalText = v.fallback(v.optional(v.string()), undefined);
const frontSchema = v.object({
  base_model: v.optional(v.unknown()),
  base_model_relation: v.fallback(
    v.optional(v.picklist(['merge', 'adapter', 'finetune', 'quantized'])),
    undefined,
  ),
  license: optionalText,
  license_name: optionalText,
  license_link: optionalText,
});
