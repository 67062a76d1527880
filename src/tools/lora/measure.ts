/** What a LoRA, or the difference of two models, is made of: singular values of every module, before a rank is chosen. */

import { AmalgamError } from '../../errors';
import { formatModelRef, parseModelRef } from '../../formats/recipe';
import { openBackend } from '../../host/backends';
import type { OpenModels } from '../../host/models';
import { progressMeter } from '../../host/progress-meter';
import { withResources } from '../../host/resources';
import { openForReading } from '../../host/weight-inputs';
import type { Adapter } from '../../inputs/adapter';
import { noteIgnored } from '../../inputs/adapter';
import { summaryOf } from '../../inputs/opened-model';
import { collectProblems, nameSome, warningsOf } from '../../inputs/problems';
import { tensorsToRead } from '../../inputs/row-map';
import { AMALGAM_VERSION } from '../../merge/version';
import type { MeasuredModule } from '../../reports/lora';
import { defaultsOf } from '../../reports/option';
import { openSides } from '../difference/compare-models';
import { bytesToCompare, weightFiles } from '../difference/compare-tensors';
import type { CompareProgress } from '../difference/report';
import { mayDiffer } from '../difference/tensor-pairs';
import { checkExtraction } from './checks';
import { measured, readPart, requireFactors, svdOf } from './factors';
import { changedTensors } from './lora-modules';
import { loraOptions } from './options';
import type { MeasureLoraReport, MeasureLoraRequest } from './report';

/** Opens the adapter of `base+adapter`, or the one that is named alone. @throws AmalgamError `Usage` for a model */
export async function openLora(ref: string, models: OpenModels): Promise<Adapter> {
  const { model, adapter } = parseModelRef(ref);
  const opened = await models.open(formatModelRef({ model: adapter ?? model }));
  if (opened.kind === 'adapter') return opened;
  throw new AmalgamError(
    'Usage',
    `${ref} is a whole model, not a LoRA.`,
    'Give its base too, and the difference of the two is measured.',
  );
}

export async function runMeasureLora(
  request: MeasureLoraRequest,
  models: OpenModels,
  signal: AbortSignal,
  onProgress: (progress: CompareProgress) => void,
): Promise<MeasureLoraReport> {
  const begin = performance.now();
  return withResources(async ({ keep }) => {
    const engine = keep(await openBackend(request.engine));
    const meter = progressMeter<CompareProgress>(onProgress, () => engine);
    const done = (found: Pick<MeasureLoraReport, 'modules' | 'facts' | 'notes'>): MeasureLoraReport => {
      meter.flush();
      const { kind, adapter } = engine;
      const seconds = (performance.now() - begin) / 1000;
      return { ...found, engine: kind, adapter, version: AMALGAM_VERSION, seconds, stages: meter.stages() };
    };
    if (!('lora' in request)) {
      const sides = await openSides(request.base, request.finetuned, models.open);
      const { maxRank, embeddings, vectors, dtype, seed } = defaultsOf(loraOptions);
      const { read } = keep(await openForReading({ inputs: weightFiles(sides) }, models, meter, signal));
      const options = {
        ...{ base: sides.base, tuned: sides.tuned, engine, read, maxRank, dtype, signal },
        ...{ seed: request.seed ?? seed, rank: { kind: 'energy', share: 1 } as const },
        settings: { include: request.include ?? [], exclude: request.exclude ?? [], embeddings, vectors },
        onBytes: (bytes: number, tensor: string) => meter.advance(bytes, tensor),
        onTensor: () => meter.finishTensor(),
      };
      const shared = checkExtraction(options).shared.filter(mayDiffer);
      meter.begin('decomposing', bytesToCompare({ shared, raw: [] }), shared.length);
      const { modules } = await changedTensors(shared, options);
      return done({
        modules: modules.map(({ module, kind, pair, squares, values }) => ({
          ...{ module, kind, shape: [...pair.base.shape], rank: null, scale: null, squares },
          values: [...values],
        })),
        facts: [],
        notes: sides.notes,
      });
    }
    const lora = await openLora(request.lora, models);
    requireFactors(lora);
    const { path, weightFile, config, updates } = lora;
    const inputs = [{ folder: path, file: weightFile.path }];
    const { read } = keep(await openForReading({ inputs }, models, meter, signal));
    meter.begin('decomposing', weightFile.byteLength, updates.size);
    const modules: MeasuredModule[] = [];
    for (const update of updates) {
      const part = await readPart(lora, update, read);
      const found = measured(part, await svdOf(part));
      // factors of an image model are read scaled
      modules.push(lora.image ? { ...found, scale: null } : found);
      meter.advance(weightFile.byteLength / updates.size, part.module);
      meter.finishTensor();
    }
    const problems = collectProblems();
    noteIgnored(lora, problems);
    const said = (label: string, value: string | undefined) => (value ? [{ label, value }] : []);
    const dtypes = new Set(
      [...updates.values()].flatMap(({ a, b }) => [a, b].flatMap(tensorsToRead)).map(({ dtype }) => dtype),
    );
    return done({
      modules,
      facts: [
        ...said('Kind', summaryOf(lora)),
        ...said('Base', config.baseModel),
        ...said('Revision', config.revision),
        ...said('Task', config.taskType),
        ...said('Stored as', [...dtypes].join(', ')),
        ...said('Names of', lora.image?.convention ?? (config.type === 'MLX' ? 'mlx_lm' : 'PEFT')),
        ...said('Carried whole', nameSome([...lora.replaces.keys()])),
      ],
      notes: warningsOf(problems.list()),
    });
  });
}
