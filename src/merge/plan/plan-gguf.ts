/** The GGUF file of an output: planned from its config, its tokenizer and its tensors, or refused by name. */
import { AmalgamError } from '../../errors';
import type { Recipe } from '../../formats/recipe';
import { formatRecipe } from '../../formats/recipe-yaml';
import { type GgufFile, ggufFile } from '../../gguf/gguf-file';
import { type GgufPlan, planGguf } from '../../gguf/gguf-plan';
import { readSmallText } from '../../inputs/header';
import type { Problems } from '../../inputs/problems';
import type { ModelFile } from '../../sources/model-folder';
import type { ShardPlan } from '../../write/shard-plan';
import { AMALGAM_VERSION } from '../version';
import type { Plan, TensorPlan } from './plan';
import { knownHashes } from './shards';

/** Most bytes of a tokenizer file. */
const MAX_BYTES = 64 * 2 ** 20;

/** @returns undefined where the recipe asks for none, or for one that cannot be written: that is a problem then */
export async function planOutputGguf(
  recipe: Recipe,
  tensors: readonly TensorPlan[],
  extras: Plan['extras'],
  fileOf: (folder: string, file: string) => ModelFile,
  problems: Problems,
): Promise<GgufPlan | undefined> {
  const { gguf: type, ggufOnly } = recipe.amalgam;
  if (type === undefined && !ggufOnly) return undefined;
  const textOf = async (path: string): Promise<string | undefined> => {
    const content = extras.find((extra) => extra.path === path)?.content;
    if (content === undefined || 'text' in content) return content?.text;
    return readSmallText(fileOf(content.folder, content.file), content.folder, MAX_BYTES);
  };
  try {
    if (type === undefined)
      throw wrong('gguf_only is set, but gguf names no type.', 'Say gguf: Q8_0, or leave it out.');
    const config = await textOf('config.json');
    if (config === undefined)
      throw wrong('A GGUF file needs a config.json.', 'Write safetensors, or add one.');
    const [tokenizer, settings, chatTemplate] = await Promise.all(
      ['tokenizer.json', 'tokenizer_config.json', 'chat_template.jinja'].map(textOf),
    );
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
    });
    if (planned.warning !== undefined) {
      problems.add({
        severity: 'warning',
        code: 'GgufDiffers',
        message: planned.warning,
        remedy: 'Keep the context of the GGUF file below that, or run the safetensors.',
      });
    }
    return planned;
  } catch (thrown) {
    if (!(thrown instanceof AmalgamError) || thrown.code === 'Cancelled') throw thrown;
    const { code, message, hint } = thrown;
    problems.add({ severity: 'error', code, message: `GGUF: ${message}`, remedy: hint });
    return undefined;
  }
}

function wrong(message: string, hint: string): AmalgamError {
  return new AmalgamError('GgufUnsupported', message, hint);
}

/**
 * The GGUF file with everything known in its metadata; its parts are in the order of the shards, where there are any.
 * @param stem its name without the type; `model` where nobody has a name for it
 */
export function finishGguf(
  plan: Pick<Plan, 'recipe' | 'inputs'> & { gguf: GgufPlan },
  shards: readonly ShardPlan[],
  stem: string | undefined,
  hashes: ReadonlyMap<string, string>,
): GgufFile {
  const { gguf, recipe } = plan;
  const order = shards.flatMap((shard) => shard.tensors.map(({ name }) => name));
  const known = knownHashes(plan.inputs, hashes);
  const texts: [key: string, text: string][] = [
    ['amalgam.recipe', formatRecipe(recipe)],
    ['amalgam.version', AMALGAM_VERSION],
    ...(known === undefined ? [] : [['amalgam.inputs', known] satisfies [string, string]]),
  ];
  return ggufFile(
    ggufName(stem, gguf),
    gguf,
    order.length > 0 ? order : [...gguf.tensors.keys()],
    texts.map(([key, value]) => [key, { type: 'text', value }] as const),
  );
}

/** `<name>-<TYPE>.gguf`, the name made one that every system takes. */
export function ggufName(stem: string | undefined, { type }: Pick<GgufPlan, 'type'>): string {
  const plain = (stem ?? '').replaceAll(/[^\p{L}\p{N}._-]+/gu, '-').replaceAll(/^[-.]+|[-.]+$/g, '');
  return `${plain === '' ? 'model' : plain}-${type}.gguf`;
}
