import { errorFacts } from '../errors';
import { renameRepositories } from '../formats/recipe-models';
import type { ModelFacts } from '../reports/models';
import type { WorkerApi } from '../worker/api';
import type { AnyProgress, HeadlessCalls, Outcome } from './headless-calls';

/**
 * The calls of the headless command, on the worker's session: behind a page's worker, or in the command's own process.
 * @param tell takes the progress of every job
 */
export function headlessCalls(engine: WorkerApi, tell: (progress: AnyProgress) => void): HeadlessCalls {
  return {
    facts: () => outcome(() => engine.facts()),

    open: ({ recipe, hub, models, texts = [] }) =>
      outcome(async () => {
        await engine.setHub(hub);
        for (const { name, text } of texts) await engine.addCalibrationText(name, text);
        const facts: ModelFacts[] = [];
        const pinned = new Map<string, string>();
        for (const { name, url } of models) {
          const model = url === undefined ? await engine.openHub(name) : await engine.openServed(name, url);
          facts.push(model);
          pinned.set(name, model.ref);
        }
        return { recipe: renameRepositories(recipe, pinned), models: facts };
      }),

    plan: (recipe) => outcome(() => engine.plan(recipe)),

    interrupted: () => outcome(() => engine.interrupted()),

    merge: (request) => outcome(() => engine.merge(request, ({ finished: _, ...line }) => tell(line))),

    importance: (request) =>
      outcome(() => engine.importance(request, ({ finished: _, ...line }) => tell(line))),

    verify: ({ url, ...request }) =>
      outcome(async () => {
        await engine.openServed(request.merged, url);
        return engine.verify(request, ({ finished: _, ...line }) => tell(line));
      }),

    readDataset: (request) => outcome(() => engine.readDataset(request, tell)),

    evaluate: (request) => outcome(() => engine.evaluate(request, tell)),

    generate: (request) => outcome(() => engine.generate(request, tell)),

    profile: (request) =>
      outcome(async () => {
        const { tensors: _, ...facts } = await engine.profile(request, () => undefined);
        return facts;
      }),

    compare: ({ outputUrl, ...request }) =>
      outcome(() =>
        engine.compare(
          { ...request, ...(outputUrl ? { destination: { kind: 'served', url: outputUrl } } : {}) },
          ({ finished: _, ...line }) => tell(line),
        ),
      ),

    extractLora: ({ outputUrl, ...request }) =>
      outcome(() =>
        engine.extractLora(
          { ...request, destination: { kind: 'served', url: outputUrl } },
          ({ finished: _, ...line }) => tell(line),
        ),
      ),

    measureDepth: (request) =>
      outcome(() => engine.measureDepth(request, ({ finished: _, ...line }) => tell(line))),

    collapse: ({ outputUrl, ...request }) =>
      outcome(() =>
        engine.collapse(
          { ...request, destination: { kind: 'served', url: outputUrl } },
          ({ finished: _, ...line }) => tell(line),
        ),
      ),
  };
}

async function outcome<T>(act: () => Promise<T>): Promise<Outcome<T>> {
  try {
    return { value: await act() };
  } catch (thrown) {
    return { error: errorFacts(thrown) };
  }
}
