/** The models opened in this session, by the name a recipe uses. Opening reads headers and configs only. */
import { AmalgamError } from '../errors';
import { displayName } from '../formats/names';
import { describeModel, headerHash, type OpenModel, openModel } from '../inputs/opened-model';
import type { CalibrationText } from '../reports/importance';
import type { ModelInfo } from '../reports/models';
import type { RepoFacts } from '../sources/hub-file';
import type { Hub } from '../sources/hub-request';
import { findFile, type ModelFile, type ModelFolder } from '../sources/model-folder';
import { SAMPLE_TEXTS, sampleText } from '../sources/sample';
import { throughCache } from '../store/cached-source';

export interface OpenModels {
  /** Opens a folder under the name it has, or the one given. Opening the same name again replaces it. */
  add(folder: ModelFolder, path?: string, signal?: AbortSignal): Promise<ModelInfo>;
  /** Opens `owner/name[@revision]` on the Hub; its name is pinned to the commit. */
  addHub(id: string, revision?: string, signal?: AbortSignal): Promise<ModelInfo>;
  /** The opened model of that name; no hub is asked. @throws AmalgamError `ModelUnknown` */
  open(path: string): Promise<OpenModel>;
  file(folder: string, file: string): { folder: ModelFolder; file: ModelFile };
  /** Weights on the Hub that are not in the cache pass by a job, stored nowhere; absent: they are downloaded. */
  readonly passing?: true;
  /** Texts that models can be calibrated on. */
  readonly texts: ReturnType<typeof calibrationTexts>;
}

export function openModels(hub: () => Hub): OpenModels {
  const opened = new Map<string, OpenModel>();

  const add = async (
    folder: ModelFolder,
    path = folder.path,
    signal?: AbortSignal,
    facts?: RepoFacts,
  ): Promise<ModelInfo> => {
    const readable = {
      ...folder,
      files:
        folder.origin.kind === 'hub' ? folder.files.map((file) => throughCache(folder, file)) : folder.files,
    };
    const model = await openModel(readable, path, signal);
    opened.set(path, model);
    return { ...describeModel(model, facts), headers: await headerHash(model) };
  };
  const addHub = async (id: string, revision?: string, signal?: AbortSignal): Promise<ModelInfo> => {
    const { openHubModel } = await import('../sources/hub');
    const folder = await openHubModel(hub(), id, revision, signal);
    return add(folder, `${folder.path}@${folder.origin.commit}`, signal, folder.facts);
  };
  return {
    texts: calibrationTexts(),
    add,
    addHub,
    async open(path) {
      const known = opened.get(path);
      if (known) return known;
      // a name alone may be that of a folder on the user's disk: no hub is asked for it
      throw new AmalgamError(
        'ModelUnknown',
        `${displayName(path)} is not open.`,
        'Open its folder, or get it from the Hub.',
      );
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
}

// The texts that models can be calibrated on, or their token ids, by the name a recipe uses: those given in this session, and the sample's.

/** The calibration texts of the sample. */
export const sampleCalibrationNames: readonly string[] = SAMPLE_TEXTS.flatMap(([file]) =>
  file.endsWith('.calibration.txt') ? [file] : [],
);

function calibrationTexts() {
  const given = new Map<string, CalibrationText>();
  const isSample = (name: string) => SAMPLE_TEXTS.some(([file]) => file === name);
  return {
    /** Makes a text known, in place of one of the same name. */
    add(name: string, text: CalibrationText): void {
      given.set(name, text);
    },
    has: (name: string) => given.has(name) || isSample(name),
    /** The text of a known name. @throws AmalgamError what fetching the sample's throws */
    read: async (name: string) => given.get(name) ?? sampleText(name),
  };
}
