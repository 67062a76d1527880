import { AmalgamError } from '../errors';
import type { LocalFile } from '../reports/models';
import { fileSource } from './file-source';
import type { ModelFile, ModelFolder } from './model-folder';

/** The name of the model made of files that were picked one by one, outside any folder. */
const LOOSE_FILES = 'files';

/**
 * Groups picked or dropped files by folder. A folder is a model when it directly holds `config.json`,
 * `adapter_config.json`, a `*.safetensors` file or one model in GGUF; of several in a folder each is a model. Every other file belongs to the nearest model above it, and to none
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
  const ggufs = ggufModels(files, models);
  for (const { path, file } of files) {
    const own = ggufs.get(path);
    const folder = own ?? nearestModel(parentFolder(path), models);
    if (folder === undefined) continue;
    models.get(folder)?.push({
      path:
        own !== undefined || folder === ''
          ? path.slice(parentFolder(path).length).replace(/^\//, '')
          : path.slice(folder.length + 1),
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

/** Models in one file, or in several that count themselves; Ollama names them by their hash. */
const GGUF = /(?:-\d{5}-of-\d{5})?\.gguf$|(?<=^|\/)(?=sha256-[0-9a-f]{64}$)/i;
const PROJECTOR = /mmproj[^/]*$/i;

/** Adds models in GGUF to those that are found. @returns the models of files that are not all of their folder */
function ggufModels(files: readonly LocalFile[], models: Map<string, ModelFile[]>): Map<string, string> {
  const found = new Map<string, Set<string>>();
  const weights = files.filter(({ path }) => GGUF.test(path) && !PROJECTOR.test(path));
  for (const { path } of weights) {
    const folder = parentFolder(path);
    found.set(folder, (found.get(folder) ?? new Set()).add(path.replace(GGUF, '')));
  }
  const isOther = (folder: string) =>
    files.some(
      ({ path }) => parentFolder(path) === folder && /adapter_config\.json$|\.safetensors$/.test(path),
    );
  const own = new Map<string, string>();
  for (const [folder, names] of found) {
    if (folder !== '' && isOther(folder)) continue;
    if (folder !== '' && names.size === 1) {
      if (!models.has(folder)) models.set(folder, []);
      continue;
    }
    if (!isOther(folder)) models.delete(folder);
    for (const name of names) models.set(name, []);
    for (const { path } of weights) if (parentFolder(path) === folder) own.set(path, path.replace(GGUF, ''));
  }
  return own;
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
