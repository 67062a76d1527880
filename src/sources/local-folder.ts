import { AmalgamError } from '../errors';
import type { LocalFile } from '../reports/models';
import { fileSource } from './file-source';
import type { ModelFile, ModelFolder } from './model-folder';

/** What diffusers has beside the folders of a model's parts, which are none by themselves. */
const PIPELINE = 'model_index.json';

/** The name of the model made of files that were picked one by one, outside any folder. */
const LOOSE_FILES = 'files';

/**
 * Groups picked or dropped files by folder. A folder is a model when it directly holds `config.json`,
 * `adapter_config.json`, a `*.safetensors` file, diffusers' `model_index.json` or one model in GGUF; of several such files that nothing joins, each is a model.
 * Every other file belongs to the nearest model above it, and to none
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

  const pipelines = files.flatMap(({ path }) => (nameOf(path) === PIPELINE ? parentFolder(path) : []));
  const isPart = (path: string) => pipelines.some((folder) => folder === '' || path.startsWith(`${folder}/`));
  const models = new Map<string, ModelFile[]>(pipelines.map((folder) => [folder, []]));
  for (const { path } of files) {
    if (isModelFile(path) && !isPart(path)) models.set(parentFolder(path), []);
  }
  const ownModels = fileModels(
    files.filter(({ path }) => !isPart(path)),
    models,
  );
  for (const { path, file } of files) {
    const own = ownModels.get(path);
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
const SAFETENSORS = /\.safetensors$/i;
/** What says that the safetensors beside it are of one model. */
const OF_ONE = /(?:^|\/)(?:config|adapter_config)\.json$|\.index\.json$|-\d{5}-of-\d{5}\.safetensors$/i;

/**
 * Adds models that are files, in GGUF or, where nothing beside them says that they belong together, safetensors: LoRAs of image
 * models are such. @returns the models of files that are not all of their folder
 */
function fileModels(files: readonly LocalFile[], models: Map<string, ModelFile[]>): Map<string, string> {
  const has = (folder: string, what: RegExp) =>
    files.some(({ path }) => parentFolder(path) === folder && what.test(path));
  const modelOf = (path: string): string | undefined => {
    const folder = parentFolder(path);
    if (GGUF.test(path)) {
      const isBeside = PROJECTOR.test(path) || (folder !== '' && has(folder, SAFETENSORS));
      return isBeside ? undefined : path.replace(GGUF, '');
    }
    const isAlone = SAFETENSORS.test(path) && !has(folder, OF_ONE);
    return isAlone ? path.replace(SAFETENSORS, '') : undefined;
  };
  const found = new Map<string, Map<string, string>>();
  for (const { path } of files) {
    const name = modelOf(path);
    if (name === undefined) continue;
    const folder = parentFolder(path);
    found.set(folder, (found.get(folder) ?? new Map()).set(path, name));
  }
  const own = new Map<string, string>();
  for (const [folder, named] of found) {
    const isOther = has(folder, /adapter_config\.json$/) || (has(folder, OF_ONE) && has(folder, SAFETENSORS));
    if (folder !== '' && isOther) continue;
    const names = new Set(named.values());
    if (folder !== '' && names.size === 1) {
      if (!models.has(folder)) models.set(folder, []);
      continue;
    }
    if (!isOther) models.delete(folder);
    for (const name of names) models.set(name, []);
    for (const [path, name] of named) own.set(path, name);
  }
  return own;
}

function isModelFile(path: string): boolean {
  const name = nameOf(path);
  return name === 'config.json' || name === 'adapter_config.json' || name.endsWith('.safetensors');
}

const nameOf = (path: string) => path.slice(path.lastIndexOf('/') + 1);

function parentFolder(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/')));
}

function nearestModel(folder: string, models: ReadonlyMap<string, unknown>): string | undefined {
  if (models.has(folder)) return folder;
  return folder === '' ? undefined : nearestModel(parentFolder(folder), models);
}
