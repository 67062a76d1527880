/** Opening what belongs to image and video models: a LoRA, a checkpoint in one file, or the folders of diffusers. */
import { AmalgamError } from '../errors';
import { isImageModel } from '../formats/image-checkpoint';
import { SHARD_INDEX } from '../formats/shard-index';
import { findFile, type ModelFile, type ModelFolder } from '../sources/model-folder';
import type { Adapter } from './adapter';
import { type Checkpoint, openCheckpoint } from './checkpoint';
import { openImageLora } from './image-adapter';
import { nameSome } from './problems';
import type { TensorRef } from './tensor-view';

/** What diffusers calls the weights of a part, its own modules first. */
const WEIGHTS = ['diffusion_pytorch_model', 'model'];

/** Whether diffusers made the folder: a pipeline, or one part of it. */
function isOfDiffusers(folder: ModelFolder): boolean {
  return folder.files.some(({ path }) =>
    /^(?:model_index\.json|diffusion_pytorch_model.*\.safetensors)$/.test(path),
  );
}

/** @throws AmalgamError as {@link openImageLora} and {@link openCheckpoint} */
export async function openImageModel(
  folder: ModelFolder,
  path: string,
  signal?: AbortSignal,
): Promise<Adapter | Checkpoint> {
  if (isOfDiffusers(folder)) return openPipeline(folder, path, signal);
  const lora = await openImageLora(folder, path, signal);
  if (lora) return lora;
  const checkpoint = await openCheckpoint(folder, path, signal);
  return isImageModel(checkpoint.tensors.keys()) ? { ...checkpoint, isImage: true } : checkpoint;
}

/** Every part that has weights, as one checkpoint; the names of its tensors begin with their folder's. */
async function openPipeline(folder: ModelFolder, path: string, signal?: AbortSignal): Promise<Checkpoint> {
  const isWhole = findFile(folder, 'model_index.json') !== undefined;
  const parts = isWhole
    ? [
        ...new Set(
          folder.files.flatMap(({ path: file }) => /^([^/]+)\/[^/]+\.safetensors$/.exec(file)?.[1] ?? []),
        ),
      ]
    : [''];
  if (parts.length === 0) {
    throw new AmalgamError(
      'NotSafetensors',
      `${path} has a model_index.json, but no folder with weights in safetensors.`,
      'Get the whole folder, or save the pipeline again with diffusers (save_pretrained).',
    );
  }
  const tensors = new Map<string, TensorRef>();
  const weightFiles: ModelFile[] = [];
  const quantized: string[] = [];
  for (const part of parts) {
    const begin = part === '' ? '' : `${part}/`;
    const opened = await openCheckpoint(partFolder(folder, begin), `${path}${part && `/${part}`}`, signal);
    if (opened.dequantized.formats.size > 0) quantized.push(part);
    for (const [name, ref] of opened.tensors) {
      tensors.set(part === '' ? name : `${part}.${name}`, { ...ref, folder: path, file: begin + ref.file });
    }
    weightFiles.push(...opened.weightFiles.map((file) => findFile(folder, begin + file.path)!));
  }
  if (quantized.length > 0) {
    throw new AmalgamError(
      'AdapterUnsupported',
      `${path} holds quantized weights (${nameSome(quantized)}), which are not read in the folders of diffusers.`,
      'Use the model that they were made from.',
    );
  }
  return {
    ...{ kind: 'checkpoint', path, folder, tensors, weightFiles, isImage: true },
    dequantized: { tensors, formats: new Set(), unscaled: [] },
  };
}

/** The weights of a part: those without a variant's name, as diffusers loads them, where there are such. */
function partFolder(folder: ModelFolder, begin: string): ModelFolder {
  const files = folder.files
    .filter(({ path }) => path.startsWith(begin) && !path.slice(begin.length).includes('/'))
    .map((file) => ({ ...file, path: file.path.slice(begin.length) }));
  const named = (end: RegExp) => files.filter(({ path }) => end.test(path));
  const index = WEIGHTS.flatMap((name) => named(new RegExp(`^${name}\\.safetensors\\.index\\.json$`)))[0];
  const whole = WEIGHTS.flatMap((name) => named(new RegExp(`^${name}\\.safetensors$`)))[0];
  const shards = named(/-\d{5}-of-\d{5}\.safetensors$/);
  const all = named(/\.safetensors$/);
  const taken = index ? [...shards, { ...index, path: SHARD_INDEX }] : whole ? [whole] : all;
  return { ...folder, files: taken };
}
