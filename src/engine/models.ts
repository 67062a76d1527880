/** The models opened in this session, by the name a recipe uses. Opening reads headers and configs only. */
import { AmalgamError } from '../errors';
import { parseHubId } from '../formats/hub-id';
import { displayName } from '../formats/names';
import { formatModelRef, parseModelRef, type RepoRef } from '../formats/recipe';
import { describeModel, type OpenModel, openModel } from '../inputs/open-model';
import type { ModelFacts } from '../reports/models';
import { openHubModel } from '../sources/hub';
import type { Hub } from '../sources/hub-request';
import { findFile, type ModelFile, type ModelFolder } from '../sources/model-folder';
import { openForHeader } from '../store/cached-source';
import { type CalibrationTexts, calibrationTexts } from './calibration-texts';

export interface OpenModels {
  /** Opens a folder under the name it has, or the one given. Opening the same name again replaces it. */
  add(folder: ModelFolder, path?: string): Promise<ModelFacts>;
  /** Opens `owner/name[@revision]` on the Hub; its name is pinned to the commit. */
  addHub(id: string, revision?: string): Promise<ModelFacts>;
  /** The model a recipe names: an opened one, else a model on the Hub. @throws AmalgamError `ModelUnknown` */
  open(path: string): Promise<OpenModel>;
  /** The name with its Hub revision pinned to a commit; names of opened models, and those that cannot be opened, as they are. */
  pin(ref: string): Promise<string>;
  file(folder: string, file: string): { folder: ModelFolder; file: ModelFile };
  /** Texts that models can be calibrated on. */
  readonly texts: CalibrationTexts;
}

export function openModels(hub: () => Hub): OpenModels {
  const opened = new Map<string, OpenModel>();

  const add = async (folder: ModelFolder, path = folder.path, license?: string): Promise<ModelFacts> => {
    const readable = { ...folder, files: folder.files.map((file) => throughCache(folder, file)) };
    const model = await openModel(readable, path);
    opened.set(path, model);
    return describeModel(model, license);
  };
  const addHub = async (id: string, revision?: string): Promise<ModelFacts> => {
    const folder = await openHubModel(hub(), id, revision);
    return add(folder, `${folder.origin.repo}@${folder.origin.commit}`, folder.license);
  };
  const pinRepo = async (repo: RepoRef): Promise<RepoRef> => {
    const name = formatModelRef({ model: repo });
    if (opened.has(name)) return repo;
    try {
      const { ref } = await addHub(hubId(repo.path), repo.revision);
      return parseModelRef(ref).model;
    } catch (thrown) {
      // the plan opens it again and lists why it cannot be opened, beside everything else that is wrong
      if (thrown instanceof AmalgamError && thrown.code !== 'Cancelled') return repo;
      throw thrown;
    }
  };

  return {
    texts: calibrationTexts(),
    add,
    addHub,
    async open(path) {
      const known = opened.get(path);
      if (known) return known;
      const repo = parseModelRef(path).model;
      const { ref } = await addHub(hubId(repo.path), repo.revision);
      return opened.get(ref)!;
    },
    async pin(ref) {
      const { model, adapter } = parseModelRef(ref);
      return formatModelRef({
        model: await pinRepo(model),
        ...(adapter ? { adapter: await pinRepo(adapter) } : {}),
      });
    },
    file(folder, path) {
      const model = opened.get(folder);
      const file = model && findFile(model.folder, path);
      if (!model || !file) {
        throw new AmalgamError('ModelUnknown', `${folder}/${path} is not open.`, 'Open the model again.');
      }
      return { folder: model.folder, file };
    },
  };

  function hubId(path: string): string {
    try {
      return parseHubId(path, hub().url).id;
    } catch (cause) {
      throw new AmalgamError(
        'ModelUnknown',
        `The recipe names ${displayName(path)}, which is neither an opened model nor a name the Hub can have.`,
        'Add the model first, or write it as owner/name.',
        { cause },
      );
    }
  }
}

/** The same file, read from the cache where the Hub's copy is already there. */
function throughCache(folder: ModelFolder, file: ModelFile): ModelFile {
  if (folder.origin.kind !== 'hub') return file;
  return {
    ...file,
    open: () => ({
      ...file.open(), // its stream is what fills the cache
      async read(begin, end, signal) {
        const source = await openForHeader(folder, file, signal);
        try {
          return await source.read(begin, end, signal);
        } finally {
          source.close();
        }
      },
    }),
  };
}
