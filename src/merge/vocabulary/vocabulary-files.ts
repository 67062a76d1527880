/** The small files that depend on the output's vocabulary: the tokenizer, and configs that name ids of tokens. */
import { specialTokens } from '../../formats/chat-template';
import { editJsonObject } from '../../formats/json-edit';
import { parseModelConfig } from '../../formats/model-config';
import { displayName } from '../../formats/names';
import { counted } from '../../formats/quantity';
import {
  isJsonNumber,
  type JsonObject,
  type JsonValue,
  MAX_JSON_LENGTH,
  parseJsonObject,
} from '../../formats/strict-json';
import type { Checkpoint } from '../../inputs/checkpoint';
import { readSmallText } from '../../inputs/header';
import type { Model } from '../../inputs/model';
import { nameSome, type Problems, thrownProblem } from '../../inputs/problems';
import { findFile, type ModelFolder } from '../../sources/model-folder';
import type { VocabularyFiles } from '../plan/extras';
import type { Plan } from '../plan/plan';
import type { ChosenTemplate } from './chat-template';
import type { OutputVocabulary } from './output-vocabulary';
import type { ResolvedVocabulary } from './resolved-vocabulary';
import { tokenIds, withTokenIds } from './token-ids';
import { isNear, knownVocabulary, TOKENIZER_JSON, type Vocabulary, vocabularyOf } from './vocabulary';

/** Tokens that end a turn in the chat templates of the larger families. */
const ENDS_OF_TURN = [
  ...['<|im_end|>', '<|eot_id|>', '<|eot|>', '<|end|>', '<end_of_turn>', '[|endofturn|]', '<|endofturn|>'],
  ...['<|end_of_turn|>', '<|END_OF_TURN_TOKEN|>', '<|end_of_role|>', '<|return|>', '<turn|>'],
];

interface Files {
  path: string;
  folder: ModelFolder;
}

/**
 * Ids that end a text, where they follow a tokenizer or a chat template that is not of the model whose config the output takes:
 * those of that model, the end of a turn in the template, and the tokenizer's own. Undefined where the config's stay.
 *
 * @param files what {@link vocabularyFiles} has made: ids in it are those of the output
 * @throws AmalgamError of reading a text
 */
export async function endsOfText(
  { from, output }: ResolvedVocabulary,
  template: ChosenTemplate | undefined,
  donor: Checkpoint,
  models: readonly Model[],
  files: VocabularyFiles,
  problems: Problems,
): Promise<VocabularyFiles> {
  const speaker = template?.from ?? from;
  if (speaker.path === donor.path && from.path === donor.path && !template) return files;
  const known = await knownVocabulary(from);
  const idOf = (token: string) =>
    output?.ids.get(token) ?? (typeof known === 'string' ? undefined : known.tokens.ids.get(token));
  const moved = await idsOf(speaker, from, models, idOf);
  const spoken = await statedEnds(speaker);
  const own = await statedEnds(donor);
  const kept = (id: number) => (files.ids ? files.ids.map(id) : id);
  const ids = (of: number[]) => of.map(speaker.path === donor.path ? kept : moved);
  const stated = ids(spoken.generation ?? spoken.config ?? []);
  const said = template ? ENDS_OF_TURN.filter((token) => template.text.includes(token)).map(idOf) : [];
  const token = from.path === donor.path || spoken.token === undefined ? [] : [idOf(spoken.token)];
  const isId = (id: number | undefined) => id !== undefined;
  const all = [...new Set([...stated, ...said, ...token].filter(isId))];
  const before = (own.generation ?? own.config ?? []).map(kept);
  if (all.length === 0 || (all.length === before.length && all.every((id) => before.includes(id))))
    return files;
  const one = (list: readonly number[]) => (list.length === 1 ? list[0]! : [...list]);
  const inConfig = ids(spoken.config ?? []).filter(isId);
  const generation = findFile(donor.folder, GENERATION);
  const text = files.generation ?? (generation && (await readSmallText(generation, donor.path, MAX_BYTES)));
  problems.note(
    'EndsFollow',
    `A text of the output ends at token ${all.join(' or ')}, as ${template ? `its chat template${template.from ? `, that of ${template.from.path},` : ''}` : `the tokenizer of ${from.path}`} has it, and not at ${before.join(' or ') || 'none'}, as in the config of ${donor.path}.`,
    'No action needed: eos_token_id is written so.',
  );
  return {
    ...files,
    eos: one(inConfig.length > 0 && said.length === 0 ? inConfig : all),
    ...(text === undefined
      ? {}
      : { generation: editJsonObject(text, new Map([['eos_token_id', one(all)]])) }),
  };
}

/** From ids of the model that a text is written for to those of the output. */
async function idsOf(
  speaker: Files,
  from: Vocabulary,
  models: readonly Model[],
  idOf: (token: string) => number | undefined,
): Promise<(id: number) => number | undefined> {
  const model = models.find(({ checkpoint }) => checkpoint.path === speaker.path);
  if (speaker.path === from.path || !model) return (id) => id;
  const known = await knownVocabulary(vocabularyOf(model));
  if (typeof known === 'string') return (id) => id;
  const tokens = new Map([...known.tokens.ids].map(([token, id]) => [id, token]));
  return (id) => {
    const token = tokens.get(id);
    return token === undefined ? undefined : idOf(token);
  };
}

/** `eos_token_id` of both configs of a folder, and its tokenizer's end token. */
async function statedEnds(
  files: Files,
): Promise<{ config?: number[]; generation?: number[]; token?: string }> {
  const [config, generation, settings] = await Promise.all(
    ['config.json', GENERATION, 'tokenizer_config.json'].map((name) => jsonOf(files, name)),
  );
  const idsIn = (fields: Record<string, unknown> | undefined) => {
    const value = fields?.eos_token_id;
    const list = (Array.isArray(value) ? value : [value]).filter(
      (id): id is number => typeof id === 'number',
    );
    return list.length > 0 ? list : undefined;
  };
  const inner = config!.text_config as Record<string, unknown> | undefined;
  const inConfig = idsIn(config) ?? idsIn(inner);
  const inGeneration = idsIn(generation);
  const token = specialTokens(settings!).eos_token;
  return {
    ...(inConfig ? { config: inConfig } : {}),
    ...(inGeneration ? { generation: inGeneration } : {}),
    ...(token === undefined ? {} : { token }),
  };
}

/** Reports the tokens of the output's tokenizer that have no row, so that a text with them cannot be run. */
export async function checkRows(
  { from, output }: ResolvedVocabulary,
  rows: number | undefined,
  problems: Problems,
): Promise<void> {
  // of a hub the file is looked at when it is written, unless it has been read for something else
  const known = rows === undefined || !isNear(from) ? undefined : await knownVocabulary(from);
  if (rows === undefined || known === undefined || typeof known === 'string') return;
  const { renumbered, ids: numbers } = known.tokens;
  if (renumbered.size > 0) {
    const words = [...renumbered].map(
      ([token, said]) => `${displayName(token, 40)} ${numbers.get(token)} and not ${said}`,
    );
    problems.warn(
      'TokensRenumbered',
      `The ids in tokenizer.json of ${from.path} have a hole, and whoever reads it counts added tokens on from the number of the others: ${nameSome(words)}.`,
      'Amalgam does the same. Where the model was trained with the ids of the file, correct tokenizer.json: every id below an added one must be there.',
    );
  }
  await checkSpecialTokens(from, output?.ids ?? numbers, problems);
  const holders = new Map<number, string[]>();
  for (const [token, id] of numbers) {
    const sharing = holders.get(id);
    if (sharing) sharing.push(token);
    else holders.set(id, [token]);
  }
  const shared = [...holders].filter(([, sharing]) => sharing.length > 1);
  if (shared.length > 0) {
    const words = shared.map(
      ([id, sharing]) => `${sharing.map((token) => displayName(token, 40)).join(' and ')} (${id})`,
    );
    problems.warn(
      'TokensShareId',
      `In tokenizer.json of ${from.path} several tokens have one id, and so one row: ${nameSome(words)}.`,
      'Correct the ids, or use the tokenizer.json that the model was published with.',
    );
  }
  const left = output?.changes?.dropped;
  const beyond = [...known.tokens.ids].filter(([token, id]) => id >= rows && !left?.has(token));
  if (beyond.length === 0) return;
  const own = beyond.filter(([token]) => !known.tokens.added.has(token));
  const some = nameSome(beyond.map(([token, id]) => `${displayName(token, 40)} (${id})`));
  problems.add({
    severity: own.length > 0 ? 'error' : 'warning',
    code: 'TokensBeyondRows',
    message: `The tokenizer of ${from.path} has ${counted(beyond.length, 'token')} beyond the ${counted(rows, 'row')} of the embedding it is written over: ${some}.`,
    remedy:
      own.length > 0
        ? 'Choose the tokenizer of the model whose rows the output has, or tokenizer_source: union.'
        : 'Texts with them cannot be run. Leave them out of the tokenizer, or add rows for them (amalgam: tokenizer tokens).',
  });
}

/** Reports tokens with a meaning, such as the end of a text, that the tokenizer beside them does not have. */
async function checkSpecialTokens(
  { path, folder }: Vocabulary,
  known: ReadonlyMap<string, number>,
  problems: Problems,
): Promise<void> {
  for (const name of ['tokenizer_config.json', 'special_tokens_map.json']) {
    const settings = await jsonOf({ path, folder }, name);
    // a loader adds these to the tokens of tokenizer.json
    const more = Object.values(Object(settings.added_tokens_decoder)).map(
      (token) => Object(token).content as unknown,
    );
    const unknown = Object.entries(specialTokens(settings)).filter(
      ([, token]) => !known.has(token) && !more.includes(token),
    );
    if (unknown.length === 0) continue;
    problems.warn(
      'SpecialTokenUnknown',
      `${name} of ${path} names tokens that its tokenizer.json does not have: ${nameSome(unknown.map(([key, token]) => `${key} “${displayName(token, 40)}”`))}.`,
      'Name tokens of the vocabulary there: a loader adds such a token behind all others, where the model has no row for it.',
    );
  }
}

/** The object in a JSON file of a folder; empty where the file is not there. @throws AmalgamError of reading a text */
async function jsonOf({ path, folder }: Files, name: string): Promise<Record<string, unknown>> {
  const file = findFile(folder, name);
  return file ? parseJsonObject(await readSmallText(file, path, MAX_BYTES), `${path}/${name}`) : {};
}

/** Ids of tokens that a text is made of, as configs name them; those of pictures and sound are replaced before they are looked up. */
const TEXT_TOKEN =
  /^(?:(?:forced_)?(?:bos|eos)|decoder_start|pad|unk|sep|cls|mask)_token_ids?$|^(?:begin_)?suppress_tokens$/;

/**
 * Reports the ids that config.json and generation_config.json of the output name and that have no row.
 *
 * @param rows of the output's embedding
 * @param textOf text of a file of the output; undefined where it has none
 */
export async function checkTokenIds(
  rows: number | undefined,
  textOf: (file: string) => Promise<string | undefined>,
  problems: Problems,
): Promise<void> {
  if (rows === undefined) return;
  for (const file of ['config.json', GENERATION]) {
    const raw = await objectOf(file, textOf, problems);
    if (raw === undefined) continue;
    const inner = raw.get('text_config');
    const fields = [...raw, ...(inner instanceof Map ? inner : [])].filter(([key]) => TEXT_TOKEN.test(key));
    const isId = (id: JsonValue) => id === null || isJsonNumber(id);
    const odd = fields.find(([, value]) => !(Array.isArray(value) ? value.every(isId) : isId(value)));
    if (odd !== undefined) {
      problems.error(
        'ConfigInvalid',
        `${odd[0]} in ${file} of the output is neither the id of a token nor a list of them.`,
        'Correct it in the model that the file is taken from.',
      );
      continue;
    }
    const beyond = fields.flatMap(([key, value]) => {
      const ids = (Array.isArray(value) ? value : [value]).flatMap((id) =>
        isJsonNumber(id) && Number(id.text) >= rows ? [Number(id.text)] : [],
      );
      return ids.length === 0 ? [] : [{ key, said: `${key} ${nameSome(ids.map(String))}` }];
    });
    if (beyond.length === 0) continue;
    const padded = file === 'config.json' && beyond.some(({ key }) => key === 'pad_token_id');
    problems.warn(
      'TokenIdsBeyondRows',
      `${file} of the output names tokens beyond the ${counted(rows, 'row')} of its embedding: ${beyond.map(({ said }) => said).join(', ')}.${padded ? ' transformers does not load a model whose pad_token_id has no row.' : ''}`,
      `Name tokens that have a row in the ${file} it is taken from, or add rows for them (amalgam: tokenizer tokens).`,
    );
  }
}

/** What a file of the output says; one of a hub, which is first looked at here, may be no JSON. */
async function objectOf(
  file: string,
  textOf: (file: string) => Promise<string | undefined>,
  problems: Problems,
): Promise<JsonObject | undefined> {
  try {
    const text = await textOf(file);
    return text === undefined ? undefined : parseModelConfig(text, file).raw;
  } catch (thrown) {
    problems.add(thrownProblem(thrown));
    return undefined;
  }
}

/** Files that know nothing of the tokens that a model itself has, so that they stay right when some are added. */
const FORMS_BESIDE = ['special_tokens_map.json', 'chat_template.jinja', 'chat_template.json'];
/** The tokens in another form, for the slow tokenizers: right as long as only added tokens come. */
const OTHER_FORMS = [
  'tokenizer.model',
  'spiece.model',
  'sentencepiece.bpe.model',
  'vocab.json',
  'vocab.txt',
  'merges.txt',
  'tekken.json',
];
const SETTINGS = 'tokenizer_config.json';
const ADDED = 'added_tokens.json';
const ALL = [
  TOKENIZER_JSON,
  SETTINGS,
  ...FORMS_BESIDE.slice(0, 1),
  ADDED,
  ...OTHER_FORMS,
  ...FORMS_BESIDE.slice(1),
];

/**
 * The tokenizer files of a plan; none where the model has none.
 *
 * @throws AmalgamError of reading a text
 */
async function tokenizerFiles(
  from: Vocabulary,
  output: OutputVocabulary | undefined,
  problems: Problems,
): Promise<Plan['extras']> {
  const has = (file: string) => findFile(from.folder, file) !== undefined;
  const copy = (file: string) => ({ path: file, content: { folder: from.path, file } });
  if (!output?.changes) return ALL.filter(has).map(copy);
  const { changes } = output;
  const { unitedTokenizer, unitedSettings, unitedAdded } = await import('./tokenizer-files');
  const edited = async (file: string, edit: (text: string) => string): Promise<Plan['extras']> => {
    const found = findFile(from.folder, file);
    if (!found) return [];
    const text = await readSmallText(found, from.path, MAX_JSON_LENGTH);
    return [{ path: file, content: { text: edit(text) } }];
  };
  const others = OTHER_FORMS.filter(has);
  const kept = changes.own.length === 0 ? others : [];
  if (kept.length < others.length) {
    problems.note(
      'TokenizerFormsLeftOut',
      `The output has the union as ${TOKENIZER_JSON} only; ${others.join(', ')} of ${from.ref} do not know its tokens and are left out.`,
      'No action needed: loaders prefer tokenizer.json.',
    );
  }
  return [
    ...(await edited(TOKENIZER_JSON, (text) => unitedTokenizer(text, output.from, changes))),
    ...(await edited(SETTINGS, (text) => unitedSettings(text, `${from.path}/${SETTINGS}`, changes))),
    ...(await edited(ADDED, (text) => unitedAdded(text, `${from.path}/${ADDED}`, changes))),
    ...[...FORMS_BESIDE.filter(has), ...kept].map(copy),
  ];
}

const GENERATION = 'generation_config.json';
const MAX_BYTES = 16 * 2 ** 20;

/**
 * @param donor checkpoint whose config and generation config the output takes
 * @throws AmalgamError of reading a text
 */
export async function vocabularyFiles(
  { from, output, config }: ResolvedVocabulary,
  donor: Checkpoint,
  problems: Problems,
): Promise<VocabularyFiles> {
  const tokenizer = await tokenizerFiles(from, output, problems);
  const ids = config && output && tokenIds(config, output);
  const file = ids && findFile(donor.folder, GENERATION);
  if (!file) return { tokenizer, path: from.path, ...(ids ? { ids } : {}) };
  const text = await readSmallText(file, donor.path, MAX_BYTES);
  const { raw } = parseModelConfig(text, `${donor.path}/${GENERATION}`);
  return { tokenizer, path: from.path, ids, generation: withTokenIds(text, raw, ids, GENERATION, problems) };
}
