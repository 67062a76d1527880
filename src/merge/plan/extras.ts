/** The small files beside the weights: config, tokenizer, model card, recipe. */
import { modelCard } from '../../formats/model-card';
import { editConfig, type ModelConfig, parseModelConfig } from '../../formats/model-config';
import { parseModelRef, type Recipe } from '../../formats/recipe';
import { formatRecipe } from '../../formats/recipe-format';
import { recipeModels } from '../../formats/recipe-models';
import { tensorBytes } from '../../formats/safetensors-header';
import { buildShardIndex } from '../../formats/shard-index';
import { type Checkpoint, saysTied } from '../../inputs/checkpoint';
import type { OpenModel } from '../../inputs/opened-model';
import type { Problems } from '../../inputs/problems';
import { findFile, hubCommit } from '../../sources/model-folder';
import type { MergeMethod } from '../method';
import { AMALGAM_VERSION } from '../version';
import { type TokenIds, withTokenIds } from '../vocabulary/token-ids';
import { takeOthers } from './other-files';
import type { Plan, TensorPlan } from './plan';
import { restackedText } from './stacked-layers';

export interface OutputShape {
  /** Whether the output is tied; undefined when no model says. */
  tied: boolean | undefined;
  /** For layers stacked anew: the layer of its origin that every output layer comes from. */
  layerOrder?: readonly number[];
  tensors: readonly TensorPlan[];
  /** Rows of embedding and head, where they are not those that the config is written for. */
  vocabSize?: number;
}

/** Files that depend on the vocabulary of the output. */
export interface VocabularyFiles {
  /** Tokenizer files; none where the model has none. */
  tokenizer: Plan['extras'];
  /** Model they come from. */
  path: string;
  /** What becomes of the ids that configs name; absent where all stay. */
  ids?: TokenIds;
  /** Text of generation_config.json, where ids in it change. */
  generation?: string;
  /** `eos_token_id` of config.json, where it follows another model's tokenizer or template. */
  eos?: number | number[];
}

/**
 * The small files of an output.
 *
 * @param config checkpoint whose config and generation config the output takes over
 * @param opened every opened model, by its key in the recipe
 */
export async function planExtras(
  recipe: Recipe,
  method: MergeMethod,
  config: Checkpoint,
  vocabulary: VocabularyFiles,
  opened: ReadonlyMap<string, OpenModel>,
  output: OutputShape,
  problems: Problems,
): Promise<Plan['extras']> {
  const extras: Plan['extras'] = [];
  if (config.isImage) {
    if (output.layerOrder === undefined) extras.push(...imageIndices(config, output.tensors));
    extras.push(...(await cardOf(recipe, method, opened, 'diffusers', problems)));
    takeOthers(config, vocabulary, extras, problems);
    return extras;
  }
  const take = (from: Checkpoint, files: readonly string[]) => {
    const found = files.filter((path) => findFile(from.folder, path) !== undefined);
    for (const path of found) extras.push({ path, content: { folder: from.path, file: path } });
    return found.length > 0;
  };
  if (config.config) {
    const text = outputConfig(config, output, problems);
    const { raw } = config.config;
    const { ids, eos } = vocabulary;
    const mapped = ids ? withTokenIds(text, raw, ids, 'config.json', problems) : text;
    const written =
      eos === undefined
        ? mapped
        : editConfig(parseModelConfig(mapped, 'config.json'), { fields: new Map([['eos_token_id', eos]]) });
    extras.push({ path: 'config.json', content: { text: written } });
    if (config.config?.modelType === undefined) {
      problems.warn(
        'ConfigMissing',
        `The config.json of ${config.path} names no model_type, so that nobody can load the output by it.`,
        'Use the config.json that the model was published with.',
      );
    }
  } else {
    problems.warn(
      'ConfigMissing',
      `${config.path} has no config.json, so the output will have none either.`,
      'Add a config.json to the output before you load it.',
    );
  }
  const { generation } = vocabulary;
  if (generation === undefined) take(config, ['generation_config.json']);
  else extras.push({ path: 'generation_config.json', content: { text: generation } });
  extras.push(...vocabulary.tokenizer);
  if (vocabulary.tokenizer.length === 0) {
    problems.warn(
      'TokenizerMissing',
      `${vocabulary.path} has no tokenizer files, so the output will have none either.`,
      'Name a model that has them as tokenizer_source, or copy them to the output.',
    );
  }
  takeCode(config, take, problems);

  extras.push(...(await cardOf(recipe, method, opened, 'transformers', problems)));
  takeOthers(config, vocabulary, extras, problems);
  return extras;
}

/**
 * The recipe as it is read again, and the card.
 * @param method with the recipe's text, where it is a tool's
 */
export async function cardOf(
  recipe: Recipe,
  method: Pick<MergeMethod, 'title' | 'reference'> & { recipe?: string },
  opened: ReadonlyMap<string, OpenModel>,
  library: 'transformers' | 'peft' | 'diffusers',
  problems: Problems,
): Promise<Plan['extras']> {
  const text = method.recipe ?? formatRecipe(recipe);
  const checkpoints = [...opened.values()].filter((model) => model.kind === 'checkpoint');
  const refs = recipeModels(recipe);
  const models = [...opened.values()];
  const licenses = models.some(({ folder }) => folder.family)
    ? (await import('./licenses')).outputLicenses(models, recipe.name, problems)
    : {};
  const hub = [...opened].filter(([, { folder }]) => hubCommit(folder.origin));
  return [
    { path: 'mergekit_config.yml', content: { text } },
    {
      path: 'README.md',
      content: {
        text: modelCard({
          title: checkpoints.length === 0 || library === 'peft' ? 'Merged adapter' : 'Merged model',
          of:
            checkpoints.length === 0
              ? 'LoRA adapters'
              : checkpoints.some(({ isImage }) => isImage)
                ? 'image models'
                : 'language models',
          recipe: text,
          ...(recipe.baseModel === undefined ? {} : { base: recipe.baseModel }),
          models: refs.filter((ref) => ref !== recipe.baseModel),
          hubIds: new Set(hub.map(([key]) => parseModelRef(key).model.path)),
          ...licenses,
          method: { title: method.title, reference: method.reference },
          library,
          version: AMALGAM_VERSION,
        }),
      },
    },
  ];
}

/** An architecture outside transformers brings its own Python files; without them its output does not load. */
function takeCode(
  from: Checkpoint,
  take: (from: Checkpoint, files: readonly string[]) => boolean,
  problems: Problems,
): void {
  if (!from.config?.raw.has('auto_map')) return;
  const code = from.folder.files.map((file) => file.path).filter((path) => /^[^/]+\.py$/.test(path));
  const copied = take(from, code);
  problems.note(
    'CustomCode',
    `${from.path} is loaded by Python code of its own (auto_map)${copied ? ', which is copied to the output' : ', which its folder does not hold'}.`,
    'Whoever loads the output must trust that code (trust_remote_code).',
  );
}

function outputConfig(
  checkpoint: Checkpoint,
  { tied, layerOrder, tensors, vocabSize }: OutputShape,
  problems: Problems,
): string {
  const dtype = mainDtype(tensors);
  const isSaidTied = saysTied(checkpoint.config, checkpoint.family, checkpoint.tensors);
  const isQuantized = tensors.some((tensor) => tensor.dtype.startsWith('F8_'));
  const plain =
    checkpoint.config!.quantization === undefined || isQuantized
      ? checkpoint.config!
      : withoutQuantization(checkpoint.config!);
  const config = layerOrder
    ? { ...plain, text: restackedText({ ...checkpoint, config: plain }, layerOrder, problems) }
    : plain;
  return editConfig(config, {
    ...(dtype ? { dtype } : {}),
    ...(tied === undefined || tied === isSaidTied ? {} : { tieWordEmbeddings: tied }),
    ...(vocabSize === undefined ? {} : { vocabSize }),
  });
}

/** What was quantized is written as plain weights; without the field it is also known what its layers are made of. */
export function withoutQuantization(config: ModelConfig): ModelConfig {
  return parseModelConfig(
    editConfig(config, { without: ['quantization_config', 'quantization'] }),
    config.fileName,
  );
}

const DTYPE_NAMES = new Map([
  ['F32', 'float32'],
  ['F16', 'float16'],
  ['BF16', 'bfloat16'],
] as const);

/** The dtype that most elements of the output have, as a config spells it. */
function mainDtype(tensors: readonly TensorPlan[]): 'float32' | 'float16' | 'bfloat16' | undefined {
  const counts = [...DTYPE_NAMES].map(([dtype, name]) => ({
    name,
    elements: tensors.reduce((sum, t) => (t.dtype === dtype ? sum + t.elements : sum), 0),
  }));
  const most = counts.reduce((a, b) => (b.elements > a.elements ? b : a));
  return most.elements > 0 ? most.name : undefined;
}

// The output of a merge of image models: its files are those of the base, by their names and with the names of the tensors in them.

/** Where the tensors of a checkpoint lie, by their names in the plan. */
export function placesOf({ tensors }: Checkpoint): NonNullable<Plan['places']> {
  return new Map([...tensors].map(([name, { file, key }]) => [name, { file, key }]));
}

/** The indices of those of its folders that have several files of weights. */
function imageIndices(checkpoint: Checkpoint, tensors: readonly TensorPlan[]): Plan['extras'] {
  const places = placesOf(checkpoint);
  return checkpoint.folder.files.flatMap(({ path }) => {
    const [, folder] = /^(.*\/)?[^/]+\.safetensors\.index\.json$/.exec(path) ?? [];
    if (!path.endsWith('.safetensors.index.json')) return [];
    const own = tensors.flatMap(({ name, dtype, shape }) => {
      const { file, key } = places.get(name)!;
      const inside = file.slice((folder ?? '').length);
      const isHere = file.startsWith(folder ?? '') && !inside.includes('/');
      return isHere ? [{ entry: [key, inside] as const, bytes: tensorBytes(dtype, shape)! }] : [];
    });
    if (own.length === 0) return [];
    const text = buildShardIndex(
      own.map(({ entry }) => entry),
      own.reduce((sum, { bytes }) => sum + bytes, 0),
    );
    return [{ path, content: { text } }];
  });
}
