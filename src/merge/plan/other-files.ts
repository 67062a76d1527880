/** The small files of a model that nothing here writes anew: processors of images and sound, parts of sentence encoders. */

import { fileFault } from '../../formats/file-fault';
import { HASHES_FILE } from '../../formats/output-hashes';
import { counted } from '../../formats/quantity';
import type { Checkpoint } from '../../inputs/checkpoint';
import { nameSome, type Problems } from '../../inputs/problems';
import { findFile, type ModelFile, type ModelFolder } from '../../sources/model-folder';
import type { Plan } from './plan';

const looked = new WeakMap<ModelFile, Promise<string | undefined>>();

/** Looks into every file that is copied; those on a hub are looked into when they are written, since reading is a download. */
export async function checkCopied(
  extras: Plan['extras'],
  folders: ReadonlyMap<string, ModelFolder>,
  problems: Problems,
): Promise<void> {
  for (const { content } of extras) {
    if ('text' in content) continue;
    const folder = folders.get(content.folder)!;
    const file = findFile(folder, content.file)!;
    if (folder.origin.kind === 'hub') continue;
    const fault =
      looked.get(file) ??
      file
        .open()
        .read(0, file.byteLength)
        .then((bytes) => fileFault(file.path, bytes));
    looked.set(file, fault);
    fault.catch(() => looked.delete(file));
    const why = await fault;
    if (why !== undefined) {
      problems.error('FileDamaged', `${content.folder}/${content.file} ${why}.`, DAMAGED);
    }
  }
}

/** What to do about a file with a `fileFault`. */
export const DAMAGED = 'Get the file again (git lfs pull in a clone), or take it out of the folder.';

/** Weights of modules behind the body of a sentence encoder, such as `2_Dense`, as a pickle. */
const MODULE_PICKLE = /^([^/]+)\/pytorch_model\.bin$/;

/** Refuses modules behind the body of a sentence encoder that cannot be read, and so not merged. */
export function checkModules({ path, folder }: Checkpoint, problems: Problems): void {
  if (!findFile(folder, 'modules.json')) return;
  for (const file of folder.files) {
    const [, module] = MODULE_PICKLE.exec(file.path) ?? [];
    if (module === undefined || findFile(folder, `${module}/model.safetensors`)) continue;
    problems.error(
      'ModuleWeights',
      `${path} has the weights of its module ${module} as a pickle only: ${file.path}.`,
      'Save the model again with sentence-transformers, which writes safetensors.',
    );
  }
}

/** Files above this are named and not copied. */
const MOST_BYTES = 32 * 2 ** 20;
/** Weights of any tool, and their indices. Weights in folders of their own are modules of a sentence encoder. */
const WEIGHTS =
  /\.(?:bin|pt|pth|ckpt|h5|msgpack|gguf|onnx|onnx_data|ot|pkl|npz|tflite|mlmodel|xml)$|\.index\.json$|^[^/]+\.safetensors$/i;
/** Hashes of a merged model's files, of this version and of those before. */
const HASHES: ReadonlySet<string> = new Set([HASHES_FILE, 'SHA256SUMS']);
/** What only concerns the model's own page, its repository or its training. */
const OF_THE_MODEL =
  /^README\.md$|^mergekit_config\.yml$|(?:^|\/)\.|(?:^|\/)(?:trainer_state|quantize_config|quant_config|[a-z]+_results)\.json$|^(?:onnx|openvino|runs|checkpoint-\d+|original)\/|\.(?:png|jpe?g|gif|webp|svg|pdf|mp4|ipynb)$/i;
/** What belongs to a vocabulary, and goes with the files of the one the output has. */
const OF_THE_VOCABULARY =
  /(?:^|\/)(?:tokeniz|vocab|merges|added_tokens|special_tokens|spiece|sentencepiece|chat_template)|\.(?:tiktoken|model|spm)$|^additional_chat_templates\//i;

/**
 * Adds every small file of the model that the output's config is of and that is not among `extras` yet; those that are left
 * behind are named.
 */
export function takeOthers(
  from: Checkpoint,
  vocabulary: { path: string; tokenizer: Plan['extras'] },
  extras: Plan['extras'],
  problems: Problems,
): void {
  const written = new Set(extras.map(({ path }) => path));
  // another vocabulary, or one that was changed, has files of its own
  const keepsVocabulary =
    vocabulary.path === from.path && vocabulary.tokenizer.every(({ content }) => 'folder' in content);
  const left: string[] = [];
  for (const { path, byteLength } of from.folder.files) {
    if (written.has(path) || HASHES.has(path) || WEIGHTS.test(path) || OF_THE_MODEL.test(path)) continue;
    // those of an image model's parts say what the parts are, and other variants of its weights are no small files
    if (from.isImage && path.endsWith('.safetensors')) continue;
    if (!from.isImage && (path === 'config.json' || path === 'generation_config.json')) continue;
    if (from.weightFiles.some((file) => file.path === path)) continue;
    if (byteLength > MOST_BYTES || (OF_THE_VOCABULARY.test(path) && !keepsVocabulary)) left.push(path);
    else extras.push({ path, content: { folder: from.path, file: path } });
  }
  if (left.length === 0) return;
  problems.note(
    'FilesLeft',
    `${counted(left.length, 'small file')} of ${from.path} ${left.length === 1 ? 'is' : 'are'} not in the output: ${nameSome(left, 8)}.`,
    'Those of another vocabulary must not be; copy larger ones yourself where they are needed.',
  );
}
