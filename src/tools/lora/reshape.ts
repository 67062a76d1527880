/** One LoRA in another shape: of other ranks, scaled, of some of its modules, in another convention. */

import { AmalgamError } from '../../errors';
import { ADAPTER_GGUF_TYPES } from '../../formats/gguf-type';
import { IMAGE_CONVENTIONS } from '../../formats/image-convention';
import { LORA_NAMINGS, type LoraNaming, loraNaming } from '../../formats/lora-naming';
import { counted } from '../../formats/quantity';
import { formatModelRef, parseModelRef } from '../../formats/recipe';
import { openBackend } from '../../host/backends';
import type { OpenModels } from '../../host/models';
import { progressMeter } from '../../host/progress-meter';
import { withResources } from '../../host/resources';
import { openForReading } from '../../host/weight-inputs';
import { type Adapter, openAdapter } from '../../inputs/adapter';
import { nameSome } from '../../inputs/problems';
import { transpose } from '../../inputs/stored-tensor';
import type { Svd } from '../../linalg/small-svd';
import { AMALGAM_VERSION } from '../../merge/version';
import { mergeRecipe } from '../../recipe/recipe-jobs';
import type { Progress } from '../../reports/job';
import type { RankChoice } from '../../reports/lora';
import { findFile } from '../../sources/model-folder';
import { commitOutput } from '../../write/output-commit';
import type { CompareProgress } from '../difference/report';
import { adapterFile, copied, factorEntries, writeAdapter } from './adapter-file';
import { ADAPTER, adapterFolder } from './checks';
import { moduleOf, PREFIX } from './extract-lora';
import { type LoraPart, measured, readPart, requireFactors, svdOf } from './factors';
import { factorsOf, isWanted, type LoraFactors } from './lora-modules';
import { openLora } from './measure';
import { rankOf, ranksOf } from './rank-choice';
import type { ExtractLoraReport, ReshapeLoraRequest } from './report';

/** A module as it is going to be written. */
interface Shaped {
  part: LoraPart;
  factors: LoraFactors;
  rank: number;
  /** Singular values before. */
  values: Float64Array;
  squares: number;
}

/** @throws AmalgamError `Usage`, `AdapterUnsupported`, `NothingToExtract`, and what sources, engine and destination throw */
export async function runReshapeLora(
  request: ReshapeLoraRequest,
  models: OpenModels,
  signal: AbortSignal,
  onProgress: (progress: CompareProgress) => void,
): Promise<ExtractLoraReport> {
  const begin = performance.now();
  const { lora: ref, rank: choice, scale, format, dtype } = request;
  const lora = await openLora(ref, models);
  requireFactors(lora);
  const naming = namingOf(lora, format);
  const saved = [...lora.replaces].filter(([name]) => isWanted(moduleOf(name), request));
  if (saved.length > 0 && format !== 'peft') {
    throw new AmalgamError(
      'AdapterUnsupported',
      `${format === 'mlx' ? 'mlx_lm' : 'llama.cpp'} takes factors alone, and ${ref} carries ${nameSome(saved.map(([name]) => name))} whole.`,
      'Leave them out by a part of their path (not modules, --exclude), or write it for PEFT.',
    );
  }
  const wanted = [...lora.updates].filter(([module]) => isWanted(module, request));
  if (wanted.length === 0) {
    throw new AmalgamError(
      'NothingToExtract',
      `None of the ${counted(lora.updates.size, 'module')} of ${ref} has such a path.`,
      'Choose modules by a part of their path.',
    );
  }
  return withResources(async ({ keep, output }) => {
    const engine = keep(await openBackend(request.engine));
    const meter = progressMeter<CompareProgress>(onProgress, () => engine);
    const { path, weightFile, config } = lora;
    const inputs = [{ folder: path, file: weightFile.path }];
    const { read } = keep(await openForReading({ inputs }, models, meter, signal));
    meter.begin('extracting', weightFile.byteLength, wanted.length);
    const shaped: Shaped[] = [];
    for (const update of wanted) {
      const part = await readPart(lora, update, read);
      shaped.push(shapedPart({ ...part, scale: part.scale * scale }, await svdOf(part), request));
      meter.advance(weightFile.byteLength / wanted.length, part.module);
      meter.finishTensor();
    }
    const factored = shaped.map(({ values, rank, factors }) => ({ values, rank, ...factors }));
    const ranks = ranksOf(choice, factored, dtype);
    const kept = shaped.flatMap(({ part: { module } }, i) =>
      ranks[i]! > 0 ? [{ module, rank: ranks[i]! }] : [],
    );
    if (kept.length === 0) {
      throw new AmalgamError(
        'NothingToExtract',
        `Every module of ${ref} that is asked for changes nothing.`,
        'Check that this LoRA was trained.',
      );
    }
    const modules = shaped.map(({ part: { module, kind, kernel }, factors }) => ({
      ...{ module, kind, kernel, factors },
    }));
    const file = adapterFile(
      [
        ...factorEntries(modules, ranks, { dtype, naming }),
        ...saved.map(([name, tensor]) => copied(PREFIX + name, tensor)),
      ],
      { amalgam_version: AMALGAM_VERSION },
      read,
      naming.weights,
    );
    const { model: base } = parseModelRef(ref);
    const named = parseModelRef(ref).adapter ? formatModelRef({ model: base }) : undefined;
    const text = naming.config?.({
      base: config.baseModel ?? named ?? '',
      ...(config.revision === undefined ? {} : { revision: config.revision }),
      modules: kept,
      saved: [...new Set(saved.map(([name]) => moduleOf(name)))],
      loraBias: false,
      fanInFanOut: config.fanInFanOut,
      tied: config.ensureWeightTying,
      task: config.taskType ?? null,
    });
    const report = reportOf(ref, shaped, ranks, request, choice);
    const done = (files: ExtractLoraReport['files']): ExtractLoraReport => {
      meter.flush();
      const { kind, adapter } = engine;
      const seconds = (performance.now() - begin) / 1000;
      const parameters = kept.reduce((sum, { module, rank }) => {
        const { inputs: across, outputs } = shaped.find(({ part }) => part.module === module)!.part;
        return sum + rank * (across + outputs);
      }, 0);
      return {
        ...{ ...report, parameters, engine: kind, adapter, version: AMALGAM_VERSION },
        saved: saved.map(([name, { shape, begin: from, end }]) => ({
          name,
          shape: [...shape],
          bytes: end - from,
        })),
        ...{ seconds, stages: meter.stages(), files },
      };
    };
    if (format === 'gguf' && text !== undefined) {
      return done(await asGguf(adapterFolder(file, text), named, request, models, signal, onProgress));
    }
    const destination = await output(request.destination);
    const files = await writeAdapter(
      destination,
      file,
      text === undefined ? {} : { 'adapter_config.json': text },
      read,
    );
    await commitOutput(destination, {});
    return done(files);
  });
}

/** How the LoRA is written in a format: one of an image model in its own names unless another tool's are asked for. */
function namingOf({ image, path, updates }: Adapter, format: ReshapeLoraRequest['format']): LoraNaming {
  const convention = IMAGE_CONVENTIONS.find((one) => one === format);
  const fits = image ? format === 'peft' || convention : !convention;
  if (!fits) {
    throw new AmalgamError(
      'Usage',
      `${path} is ${image ? 'of an image model' : 'no LoRA of an image model'}, and ${format} is not for those.`,
      `Choose ${(image ? IMAGE_CONVENTIONS : ['peft', 'mlx', 'gguf']).join(', ')}.`,
    );
  }
  if (!image) return LORA_NAMINGS[format === 'mlx' ? 'mlx' : 'peft'];
  if (!convention) return loraNaming(image);
  // ComfyUI has the blocks of a U-Net as the original has them
  const original = convention === 'comfyui' || (convention === 'kohya' && image.original);
  const has = (component: string) => [...updates.keys()].some((module) => module.startsWith(`${component}.`));
  // kohya's trainers count text encoders only where there are several
  const single = convention === 'kohya' && has('unet') && !has('text_encoder_2');
  return loraNaming({ convention, original, prefixes: single ? { text_encoder: 'lora_te' } : {} });
}

/** Factors as they are where no rank is asked for, so that nothing is lost; else those of the leading singular values. */
function shapedPart(part: LoraPart, svd: Svd, { rank: choice, maxRank, scale }: ReshapeLoraRequest): Shaped {
  const { squares } = measured(part, svd);
  const found = { part, values: svd.s.map((s) => s * Math.abs(scale)), squares: squares * scale ** 2 };
  if (choice === null) {
    const a = part.a.map((value) => value * part.scale);
    const sides = { inputs: part.inputs, outputs: part.outputs };
    return { ...found, rank: part.rank, factors: { a, b: transpose(part.b, part.outputs), ...sides } };
  }
  const most = Math.min(svd.s.length, choice.kind === 'rank' ? choice.rank : maxRank);
  // one that changes nothing has no direction
  const rank = most === 0 ? 0 : rankOf(choice, svd.s, squares, most).rank;
  const own = { ...svd, s: svd.s.map((s) => s * Math.abs(scale)) };
  const factors = factorsOf(own, rank, false);
  if (scale < 0) for (const [i, value] of factors.a.entries()) factors.a[i] = -value;
  return { ...found, rank, factors };
}

function reportOf(
  ref: string,
  shaped: readonly Shaped[],
  ranks: readonly number[],
  { dtype }: ReshapeLoraRequest,
  choice: RankChoice | null,
): Pick<ExtractLoraReport, 'base' | 'finetuned' | 'rank' | 'modules' | 'left' | 'merged' | 'notes'> {
  let [all, lost] = [0, 0];
  const modules = shaped.flatMap(({ part, values, squares }, i): ExtractLoraReport['modules'] => {
    const rank = ranks[i]!;
    const rest = choice === null ? 0 : values.slice(rank).reduce((sum, s) => sum + s * s, 0);
    all += squares;
    lost += rest;
    if (rank === 0) return [];
    return [
      {
        ...{ module: part.module, kind: part.kind, shape: [part.outputs, part.inputs], rank },
        ...{ fullRank: part.rank, normDelta: Math.sqrt(squares), singularValues: [...values.slice(0, 64)] },
        ...{ exact: true, error: squares > 0 ? Math.sqrt(rest / squares) : 0, maxError: null },
      },
    ];
  });
  const left = shaped.flatMap(({ part, squares }, i) =>
    ranks[i] === 0
      ? [
          {
            ...{ name: part.module, normDelta: Math.sqrt(squares) },
            why: squares === 0 ? 'it changes nothing' : 'the byte budget has no room for it',
          },
        ]
      : [],
  );
  return {
    ...{ base: ref, finetuned: ref, modules, left },
    rank: choice ?? { kind: 'rank', rank: Math.max(...ranks) },
    merged: { error: all > 0 ? Math.sqrt(lost / all) : 0, maxError: null, failed: [] },
    notes: dtype === 'F32' ? [] : [`Rounding to ${dtype} is not counted in the error.`],
  };
}

/** Writes a LoRA that is in memory as a GGUF file, by the merge that takes it as it is. */
async function asGguf(
  folder: ReturnType<typeof adapterFolder>,
  base: string | undefined,
  { dtype, engine, destination }: ReshapeLoraRequest,
  models: OpenModels,
  signal: AbortSignal,
  onProgress: (progress: CompareProgress) => void,
): Promise<ExtractLoraReport['files']> {
  if (base === undefined) {
    throw new AmalgamError(
      'Usage',
      'The config of the base says what llama.cpp calls the modules, and no base is named.',
      'Write the base in front of the LoRA: base+lora.',
    );
  }
  const opened: OpenModels = {
    ...models,
    open: (path) => (path === ADAPTER ? openAdapter(folder, ADAPTER) : models.open(path)),
    file: (of, path) => (of === ADAPTER ? { folder, file: findFile(folder, path)! } : models.file(of, path)),
  };
  const type = ADAPTER_GGUF_TYPES.find((one) => one === dtype)!;
  const { shards } = await mergeRecipe(
    {
      recipe: {
        mergeMethod: 'passthrough',
        models: [{ model: `${base}+${ADAPTER}`, parameters: {} }],
        parameters: {},
        amalgam: { output: 'adapter', gguf: type, ggufOnly: true },
      },
      ...{ engine, destination },
    },
    opened,
    signal,
    (progress: Progress) => onProgress({ ...progress, phase: 'extracting', finished: [] }),
  );
  return shards;
}
