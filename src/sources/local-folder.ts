import { AmalgamError } from '../errors';
import type { LocalFile } from '../reports/models';
import { fileSource } from './file-source';
import type { ModelFile, ModelFolder } from './model-folder';

/** The name of the model made of files that were picked one by one, outside any folder. */
const LOOSE_FILES = 'files';

/**
 * Groups picked or dropped files by folder. A folder is a model when it directly holds `config.json`,
 * `adapter_config.json` or a `*.safetensors` file; every other file belongs to the nearest model above it, and to none
 * where there is no such model. Folders come in the order of their first file, files in the order given.
 * @returns no folder at all when nothing among the files is a model.
 * @throws Usage when two files have the same path.
 */
export function foldersFromFiles(files: readonly LocalFile[]): ModelFolder[] {
  const seen = new Set<string>();
  for (const { path } of files) {
    if (seen.has(path)) {
      throw new AmalgamError(
        'Usage',
        `Two of the files are called ${path}.`,
        'Rename one of the folders, or open them one after the other.',
      );
    }
    seen.add(path);
  }

  const models = new Map<string, ModelFile[]>();
  for (const { path } of files) {
    if (isModelFile(path)) models.set(parentFolder(path), []);
  }
  for (const { path, file } of files) {
    const folder = nearestModel(parentFolder(path), models);
    if (folder === undefined) continue;
    models.get(folder)?.push({
      path: folder === '' ? path : path.slice(folder.length + 1),
      byteLength: file.size,
      open: () => fileSource(file, path),
    });
  }
  return [...models].map(([folder, modelFiles]) => ({
    path: folder === '' ? LOOSE_FILES : folder,
    origin: { kind: 'local' },
    files: modelFiles,
  }));
}

function isModelFile(path: string): boolean {
  const name = path.slice(path.lastIndexOf('/') + 1);
  return name === 'config.json' || name === 'adapter_config.json' || name.endsWith('.safetensors');
}

function parentFolder(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/')));
}

function nearestModel(folder: string, models: ReadonlyMap<string, unknown>): string | undefined {
  if (models.has(folder)) return folder;
  return folder === '' ? undefined : nearestModel(parentFolder(folder), models);
}
