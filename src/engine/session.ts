/** The engine's state in its worker: the Hub it talks to, the models it has opened, the job it runs. */
import { AmalgamError } from '../errors';
import { DEFAULT_HUB_URL, parseHubId } from '../formats/hub-id';
import type { Recipe } from '../formats/recipe';
import { mapRecipeModels } from '../formats/recipe';
import { makePlan } from '../merge/make-plan';
import { methodById } from '../merge/methods';
import type { Plan } from '../merge/plan';
import { planFacts } from '../merge/plan-facts';
import { AMALGAM_VERSION } from '../merge/version';
import { searchModels } from '../sources/hub';
import type { Hub } from '../sources/hub-request';
import { foldersFromFiles } from '../sources/local-folder';
import { sampleFolders } from '../sources/sample';
import { openServedFolder } from '../sources/served-folder';
import { deleteBlob, listBlobs } from '../store/blobs';
import { deleteOutput, listOutputs, openOutputFile } from '../write/finished-outputs';
import { engineFacts } from './choose-engine';
import { runMerge } from './merge-job';
import { openModels } from './models';
import type { EngineApi, ModelFacts } from './protocol';
import { cachedHashes, storageFacts, sweepStorage } from './storage-facts';

export function createSession(): EngineApi {
  let hub: Hub = { url: DEFAULT_HUB_URL };
  let job: AbortController | undefined;
  const models = openModels(() => hub);
  const swept = sweepStorage();

  /** The plan of a recipe whose Hub models are pinned to commits. */
  const plan = async (recipe: Recipe): Promise<Plan> => {
    const pins = new Map<string, string>();
    const pinned = await mapRecipeModels(recipe, async (ref) => {
      const pin = pins.get(ref) ?? (await models.pin(ref));
      pins.set(ref, pin);
      return pin;
    });
    return makePlan(pinned, (ref) => models.open(ref), methodById, await cachedHashes());
  };

  return {
    async facts() {
      await swept;
      return { ...(await engineFacts()), storage: await storageFacts(), version: AMALGAM_VERSION };
    },
    openSample: () => addAll(sampleFolders()),
    async openLocal(files) {
      const folders = foldersFromFiles(files);
      if (folders.length === 0) {
        throw new AmalgamError(
          'NotFound',
          `None of the ${files.length} files is a model: there is no config.json, adapter_config.json or *.safetensors.`,
          'Choose the folder that directly holds the model’s files.',
        );
      }
      return addAll(folders);
    },
    async openHub(idOrUrl) {
      const { id, revision } = parseHubId(idOrUrl, hub.url);
      return models.addHub(id, revision);
    },
    openServed: async (ref, url) => models.add(await openServedFolder(ref, url), ref),
    async setHub({ url, token }) {
      const next = url ?? hub.url;
      // a token belongs to the hub it was given for
      const kept = token === undefined && next === hub.url ? hub.token : token;
      hub = { url: next, ...(kept ? { token: kept } : {}) };
    },
    searchHub: (query) => searchModels(hub, query),
    plan: async (recipe) => planFacts(await plan(recipe)),
    async merge(request, onProgress) {
      if (job) {
        throw new AmalgamError('Busy', 'A merge is already running.', 'Wait for it, or cancel it first.');
      }
      const controller = new AbortController();
      job = controller;
      try {
        return await runMerge(await plan(request.recipe), request, models, controller.signal, onProgress);
      } catch (thrown) {
        if (controller.signal.aborted) {
          throw new AmalgamError('Cancelled', 'The merge was cancelled.', 'Nothing was saved.', {
            cause: thrown,
          });
        }
        throw thrown;
      } finally {
        job = undefined;
      }
    },
    async cancel() {
      job?.abort();
    },
    outputFile: (name, file) => openOutputFile(name, file),
    async cache() {
      const [blobs, outputs] = await Promise.all([listBlobs(), listOutputs()]);
      return {
        blobs: blobs.map(({ sha256, bytes, name }) => ({ sha256, bytes, name })),
        outputs: outputs.map(({ name, bytes, complete }) => ({ name, bytes, complete })),
      };
    },
    async deleteCached(kind, id) {
      await (kind === 'blob' ? deleteBlob(id) : deleteOutput(id));
    },
  };

  async function addAll(folders: Parameters<typeof models.add>[0][]): Promise<ModelFacts[]> {
    const facts: ModelFacts[] = [];
    for (const folder of folders) facts.push(await models.add(folder));
    return facts;
  }
}
