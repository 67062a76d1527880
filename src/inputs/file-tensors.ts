/** The tensors of weight files by name, from their headers: of a model's body, and of the modules behind it. */

import { AmalgamError } from '../errors';
import { moduleFolder, nameInFile } from '../formats/module-names';
import { withoutWrappers } from '../formats/names';
import { findFile, type ModelFile, type ModelFolder } from '../sources/model-folder';
import { readHeader, tensorRef } from './header';
import type { TensorRef } from './tensor-view';

/** Headers read at the same time. */
const HEADERS_AT_ONCE = 6;

/** The headers of all weight files, as references by tensor name, without what a training wrapped the model in. */
export async function readTensors(
  files: readonly ModelFile[],
  path: string,
  signal?: AbortSignal,
): Promise<Map<string, TensorRef>> {
  const tensors = new Map<string, TensorRef>();
  for (let at = 0; at < files.length; at += HEADERS_AT_ONCE) {
    const group = files.slice(at, at + HEADERS_AT_ONCE);
    const headers = await Promise.all(group.map((file) => readHeader(file, path, signal)));
    for (const [i, header] of headers.entries()) {
      for (const stored of header.values()) {
        const file = group[i]!;
        const name = withoutWrappers(stored.name);
        const other = tensors.get(name);
        if (other) throw storedTwice(path, name, other.file, file.path);
        tensors.set(name, tensorRef(path, file, stored));
      }
    }
  }
  const around = HELD_IN.find((begin) => [...tensors.keys()].every((name) => name.startsWith(begin)));
  if (around === undefined || tensors.size === 0) return tensors;
  // PEFT keeps the weight of a module that has factors under this name; a file with factors in it is refused
  const plain = new Map<string, TensorRef>();
  for (const [held, ref] of tensors) {
    const name = held.slice(around.length).replaceAll('.base_layer.', '.');
    const other = plain.get(name);
    if (other) throw storedTwice(path, name, other.file, ref.file);
    plain.set(name, ref);
  }
  return plain;
}

/** What DistributedDataParallel and DataParallel, and PEFT, hold a model in. */
const HELD_IN = ['module.', 'base_model.model.'];

function storedTwice(path: string, name: string, one: string, other: string): AmalgamError {
  return new AmalgamError(
    'IndexInvalid',
    `${path}: the tensor ${name} is stored twice, in ${one} and in ${other}.`,
    'It cannot be told which of the two is meant. Get the model again from its author.',
  );
}

/** The weight files of modules behind the body of a sentence encoder, such as `2_Dense/model.safetensors`. */
export function moduleFiles(folder: ModelFolder): ModelFile[] {
  if (!findFile(folder, 'modules.json')) return [];
  return folder.files.filter(
    ({ path }) => moduleFolder(path) !== undefined && nameInFile(path) === 'model.safetensors',
  );
}

/** Their tensors, each named with its folder in front. */
export async function moduleTensors(
  files: readonly ModelFile[],
  path: string,
  signal?: AbortSignal,
): Promise<(readonly [string, TensorRef])[]> {
  const all = await Promise.all(
    files.map(async (file) => {
      const [folder] = file.path.split('/');
      return [...(await readTensors([file], path, signal))].map(
        ([name, ref]) => [`${folder}/${name}`, ref] as const,
      );
    }),
  );
  return all.flat();
}
