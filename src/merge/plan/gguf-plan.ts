/** The GGUF file of an output: planned from its config, its tokenizer and its tensors, or refused by name. */
import { AmalgamError } from '../../errors';
import { type GgufType, NO_IMATRIX } from '../../formats/gguf-type';
import { moduleFolder } from '../../formats/module-names';
import type { Recipe } from '../../formats/recipe';
import type { AdapterModule } from '../../gguf/adapter-plan';
import type { GgufPlan } from '../../gguf/gguf-plan';
import type { Checkpoint } from '../../inputs/checkpoint';
import { readSmallText } from '../../inputs/header';
import type { Problems } from '../../inputs/problems';
import type { ModelFile } from '../../sources/model-folder';
import { methodById } from '../methods';
import { imatrixChoice } from './importance-kind';
import type { Plan, TensorPlan } from './plan';

/** Most bytes of a tokenizer file. */
const MAX_BYTES = 64 * 2 ** 20;

// a plan is made again at every move of a slider: files are read once
const texts = new WeakMap<ModelFile, Promise<string>>();

/** The text of a small file of the output, or undefined where it has none. @throws AmalgamError of reading a text */
export async function extraText(
  extras: Plan['extras'],
  path: string,
  fileOf: (folder: string, file: string) => ModelFile,
): Promise<string | undefined> {
  const content = extras.find((extra) => extra.path === path)?.content;
  if (content === undefined || 'text' in content) return content?.text;
  const file = fileOf(content.folder, content.file);
  const text = texts.get(file) ?? readSmallText(file, content.folder, MAX_BYTES);
  texts.set(file, text);
  text.catch(() => texts.delete(file));
  return text;
}

/**
 * @param textOf text of a file of the output, see {@link extraText}
 * @returns undefined where the recipe asks for none, or for one that cannot be written: that is a problem then
 */
export function planOutputGguf(
  recipe: Recipe,
  tensors: readonly TensorPlan[],
  textOf: (path: string) => Promise<string | undefined>,
  problems: Problems,
): Promise<GgufPlan | undefined> {
  return plannedGguf(recipe, problems, async (type) => {
    const module = tensors.map(({ name }) => moduleFolder(name)).find((folder) => folder !== undefined);
    if (module !== undefined)
      throw wrong(`A GGUF file has no place for ${module}, a module behind the body.`, 'Write safetensors.');
    const config = await textOf('config.json');
    if (config === undefined)
      throw wrong('A GGUF file needs a config.json.', 'Write safetensors, or add one.');
    const [tokenizer, settings, chatTemplate] = await Promise.all(
      ['tokenizer.json', 'tokenizer_config.json', 'chat_template.jinja'].map(textOf),
    );
    const { planGguf } = await import('../../gguf/gguf-plan');
    const planned = planGguf({
      type,
      name: recipe.name ?? 'Merged model',
      config,
      tokenizer: {
        ...(tokenizer === undefined ? {} : { tokenizer }),
        ...(settings === undefined ? {} : { config: settings }),
        ...(chatTemplate === undefined ? {} : { chatTemplate }),
      },
      tensors,
      isWeighted: imatrixChoice({ recipe, tensors }, methodById) !== undefined,
    });
    for (const { isNote, ...warning } of planned.warnings) {
      problems.add({ severity: isNote ? 'note' : 'warning', code: 'GgufDiffers', ...warning });
    }
    return planned;
  });
}

/**
 * The GGUF file of LoRAs that become a LoRA. The base's config says what llama.cpp calls its modules; of the base nothing else
 * is read.
 * @param openBase the base that the recipe names
 * @returns as {@link planOutputGguf}
 */
export function planAdapterGguf(
  recipe: Recipe,
  modules: readonly AdapterModule[],
  openBase: () => Promise<Checkpoint | undefined>,
  problems: Problems,
): Promise<GgufPlan | undefined> {
  return plannedGguf(recipe, problems, async (type) => {
    const { imatrix } = recipe.amalgam;
    if (imatrix !== undefined && imatrix !== NO_IMATRIX)
      throw wrong('The columns of a LoRA are not weighed.', 'Leave imatrix out.');
    const base = await openBase();
    if (!base?.config) {
      throw wrong(
        'The config of the base says what llama.cpp calls the modules, and the recipe names no base that has one.',
        'Name it in front of the adapter (base+adapter), or leave gguf out.',
      );
    }
    const { planGgufAdapter } = await import('../../gguf/adapter-plan');
    return planGgufAdapter({
      type,
      name: recipe.name ?? 'Merged LoRA',
      config: base.config.text,
      modules,
    });
  });
}

/** The plan of the file that a recipe asks for; a fault of it becomes a problem. @throws what is none */
async function plannedGguf(
  { amalgam: { gguf: type, ggufOnly, imatrix } }: Recipe,
  problems: Problems,
  plan: (type: GgufType) => Promise<GgufPlan>,
): Promise<GgufPlan | undefined> {
  if (type === undefined && !ggufOnly && imatrix === undefined) return undefined;
  try {
    if (type !== undefined) return await plan(type);
    throw wrong(
      `${ggufOnly ? 'gguf_only' : 'imatrix'} is set, but gguf names no type.`,
      'Say gguf: Q4_K_M, or leave it out.',
    );
  } catch (thrown) {
    if (!(thrown instanceof AmalgamError) || thrown.code === 'Canceled') throw thrown;
    const { code, message, hint } = thrown;
    // what a forward pass lacks is no matter for a merge, but llama.cpp's graph is one
    const remedy =
      code === 'ArchitectureUnsupported'
        ? 'Write safetensors, or choose another model for the GGUF file.'
        : hint;
    problems.error(code, `GGUF: ${message}`, remedy);
    return undefined;
  }
}

function wrong(message: string, hint: string): AmalgamError {
  return new AmalgamError('GgufUnsupported', message, hint);
}

/** Small files that say something of a model in one file; the others are inside. */
const BESIDE_GGUF = ['README.md', 'mergekit_config.yml'];

/** The small files of an output that are written; a model in one file needs few, but to run it here takes all. */
export function writtenExtras({ recipe, extras }: Pick<Plan, 'recipe' | 'extras'>): Plan['extras'] {
  return recipe.amalgam.ggufOnly ? extras.filter(({ path }) => BESIDE_GGUF.includes(path)) : extras;
}
