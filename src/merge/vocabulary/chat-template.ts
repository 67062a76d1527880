/** The chat template of the output, as the recipe asks for it, written into the tokenizer files. */
import type { AmalgamError } from '../../errors';
import { BUILT_IN_TEMPLATES, chatTemplateOf } from '../../formats/chat-template';
import { editJsonObject } from '../../formats/json-edit';
import type { Recipe } from '../../formats/recipe';
import { parseJsonObject } from '../../formats/strict-json';
import { readSmallText } from '../../inputs/header';
import type { Problems } from '../../inputs/problems';
import { findFile, type ModelFolder } from '../../sources/model-folder';
import type { Plan } from '../plan/plan';

/** A model's folder under the key it was opened by. */
interface Files {
  path: string;
  folder: ModelFolder;
}

/** A template that the recipe asks for, and the model it is of where it is one's. */
export interface ChosenTemplate {
  text: string;
  from?: Files;
}

const SETTINGS = 'tokenizer_config.json';
const FILE = 'chat_template.jinja';
const MAX_BYTES = 16 * 2 ** 20;

/**
 * The tokenizer files with the recipe's chat template in them. transformers takes `chat_template.jinja` where there is
 * one and else the member of `tokenizer_config.json`, so both agree.
 *
 * @param files the tokenizer files of the output; those that are copied come from `donor`
 * @param models every checkpoint of the recipe: `auto` takes the template that most of them have (mergekit's `merge.py`)
 */
export async function withChatTemplate(
  { chatTemplate }: Recipe,
  files: Plan['extras'],
  donor: Files,
  models: readonly Files[],
  problems: Problems,
): Promise<{ files: Plan['extras']; template?: ChosenTemplate }> {
  if (files.length === 0) return { files };
  if (chatTemplate === undefined) {
    const own = await templateOf(donor);
    if (own === undefined) await noteOtherTemplates(models, problems);
    else await checkTemplate(own, `of ${donor.path}`, problems);
    return { files };
  }
  const found = chatTemplate === 'auto' ? await Promise.all(models.map(templateOf)) : [];
  const template =
    chatTemplate === 'auto' ? mostCommon(found) : (BUILT_IN_TEMPLATES[chatTemplate] ?? chatTemplate);
  if (template === undefined) {
    problems.warn(
      'ChatTemplateMissing',
      'chat_template: auto finds no template: none of the models has one.',
      `Name one: ${Object.keys(BUILT_IN_TEMPLATES).join(', ')}, or write it out.`,
    );
    return { files };
  }
  await checkTemplate(template, 'of the output', problems);
  const others = files.filter(({ path }) => path !== FILE && path !== SETTINGS);
  const settings = files.find(({ path }) => path === SETTINGS);
  const text =
    settings && ('text' in settings.content ? settings.content.text : await textOf(donor, SETTINGS));
  const from = models[found.indexOf(template)];
  return {
    template: { text: template, ...(from ? { from } : {}) },
    files: [
      ...others,
      ...(text === undefined
        ? []
        : [
            {
              path: SETTINGS,
              content: { text: editJsonObject(text, new Map([['chat_template', template]])) },
            },
          ]),
      { path: FILE, content: { text: template } },
    ],
  };
}

// a plan is made again at every move of a slider: a template is parsed once
const parsed = new Map<string, Promise<AmalgamError | undefined>>();

/** Warns of a template that nobody can render: else it would be found when it is used. */
async function checkTemplate(template: string, whose: string, problems: Problems): Promise<void> {
  if (Object.values(BUILT_IN_TEMPLATES).includes(template)) return;
  const faultOf = async () => (await import('../../foreign/foreign-text')).templateFault(template);
  const fault = parsed.get(template) ?? faultOf();
  parsed.set(template, fault);
  const why = await fault;
  if (!why) return;
  if (why.code !== 'TokenizerInvalid') parsed.delete(template);
  problems.warn(
    'ChatTemplateInvalid',
    `The chat template ${whose} ${why.code === 'TokenizerInvalid' ? 'is no template' : 'could not be tried'}: ${why.message}`,
    `Correct it, or choose another with chat_template: auto, ${Object.keys(BUILT_IN_TEMPLATES).join(', ')}.`,
  );
}

async function noteOtherTemplates(models: readonly Files[], problems: Problems): Promise<void> {
  const found = await Promise.all(models.map(async (model) => [model, await templateOf(model)] as const));
  const first = found.find(([, template]) => template !== undefined)?.[0];
  if (!first) return;
  problems.note(
    'ChatTemplateLeft',
    `The output gets no chat template: the model its tokenizer comes from has none, but ${first.path} has one.`,
    'Write chat_template: auto to give the output the one that most models have.',
  );
}

/** The template of a checkpoint, or undefined. @throws AmalgamError of reading a text */
async function templateOf(model: Files): Promise<string | undefined> {
  const [settings, file] = await Promise.all([textOf(model, SETTINGS), textOf(model, FILE)]);
  const config = settings === undefined ? {} : parseJsonObject(settings, `${model.path}/${SETTINGS}`);
  return chatTemplateOf(config, file)?.template.trim();
}

async function textOf(model: Files, path: string): Promise<string | undefined> {
  const file = findFile(model.folder, path);
  return file && readSmallText(file, model.path, MAX_BYTES);
}

/** The text that occurs most often, the first of them where several do. */
function mostCommon(texts: readonly (string | undefined)[]): string | undefined {
  const counts = new Map<string, number>();
  for (const text of texts) if (text !== undefined) counts.set(text, (counts.get(text) ?? 0) + 1);
  return [...counts].reduce<[string, number] | undefined>(
    (best, entry) => (best && best[1] >= entry[1] ? best : entry),
    undefined,
  )?.[0];
}
