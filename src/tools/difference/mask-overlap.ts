/** How far the masks of one model agree in two recipes: both trim its task vectors again, nothing is merged. */
import type { Backend } from '../../backend/backend';
import { AmalgamError } from '../../errors';
import { openBackend } from '../../host/backends';
import type { OpenModels } from '../../host/models';
import { progressMeter } from '../../host/progress-meter';
import { withResources } from '../../host/resources';
import { openForReading } from '../../host/weight-inputs';
import { inputName, type ReadTensor } from '../../inputs/stored-tensor';
import type { MergeMethod } from '../../merge/method';
import { methodById } from '../../merge/methods';
import type { Plan, TensorPlan } from '../../merge/plan/plan';
import { isComputed } from '../../merge/run/merge-thread';
import { measuredTensors, measureWholeModel } from '../../merge/run/whole-model';
import { openComputed, openWorkspaceFor } from '../../merge/tensor/computation';
import { keptMask } from '../../merge/tensor/delta-pipeline';
import type { Prepared } from '../../merge/tensor/prepared';
import type { Workspace } from '../../merge/tensor/workspace';
import type { MaskOverlap, OverlapProgress, OverlapRequest } from '../../reports/delta-statistics';
import { throwIfCanceled } from '../../sources/cancellation';

/** A clean plan, with its calibration where its method needs one. */
interface Ready {
  plan: Plan;
  prepared?: Prepared;
}

interface OverlapJob {
  plan(recipe: OverlapRequest['recipes'][number]): Promise<Ready>;
  models: OpenModels;
  signal: AbortSignal;
  onProgress(progress: OverlapProgress): void;
}

/**
 * Counts the overlap of a model's masks in every tensor that both recipes trim.
 * @throws AmalgamError `Usage` for recipes of different bases or without the model, `NonFinite`, `Canceled`, and what
 *   planning and reading throw
 */
export async function runMaskOverlap(
  { recipes, model, engine: choice }: OverlapRequest,
  { plan, models, signal, onProgress }: OverlapJob,
): Promise<MaskOverlap[]> {
  requireComparable(recipes, model);
  const ready = [await plan(recipes[0]), await plan(recipes[1])] as const;
  return withResources(async ({ keep }) => {
    const engine = keep(await openBackend(choice));
    const meter = progressMeter<OverlapProgress>(onProgress, () => engine);
    const [a, b] = ready;
    const bytesToDownload = Math.max(a.plan.bytesToDownload, b.plan.bytesToDownload);
    const files = { inputs: filesOf(a.plan, b.plan), bytesToDownload };
    const { read } = keep(await openForReading(files, models, meter, signal));
    const pairs = trimmedByBoth([a.plan, b.plan], model);
    const elements = pairs.reduce((sum, [tensor]) => sum + tensor.elements, 0);
    meter.begin('measuring', elements, pairs.length);
    const counted = await countOverlaps(
      [
        { ...a, read },
        { ...b, read },
      ],
      model,
      {
        engine,
        signal,
        onTensor(overlap) {
          meter.advance(overlap.elements, overlap.name);
          meter.finishTensor(overlap);
        },
      },
    );
    meter.flush();
    return counted;
  });
}

/** Input files of both plans, each once. */
function filesOf(...plans: Plan[]): Plan['inputs'] {
  const files = plans.flatMap(({ inputs }) => inputs.map((i) => [inputName(i.folder, i.file), i] as const));
  return [...new Map(files).values()];
}

function requireComparable(recipes: OverlapRequest['recipes'], model: string): void {
  const [a, b] = recipes;
  if (a.baseModel !== b.baseModel) {
    throw new AmalgamError(
      'Usage',
      'The two runs have different bases, so their changes are not the same.',
      'Choose two runs of one base.',
    );
  }
  if (!recipes.every((recipe) => recipe.models?.some((m) => m.model === model))) {
    throw new AmalgamError('Usage', `Only one of the two runs has ${model}.`, 'Choose a model of both runs.');
  }
}

/** The tensors of two plans in which both trim the model, in their order. */
function trimmedByBoth(plans: readonly [Plan, Plan], model: string): [TensorPlan, TensorPlan][] {
  const trims = (tensor: TensorPlan) => {
    const { compute } = methodOf(tensor);
    return (
      isComputed(tensor) &&
      compute.kind === 'delta' &&
      compute.preset(tensor.parameters).select !== 'all' &&
      tensor.models.some(({ id }) => id === model)
    );
  };
  const others = new Map(plans[1].tensors.filter(trims).map((tensor) => [tensor.name, tensor]));
  return plans[0].tensors.filter(trims).flatMap((tensor): [TensorPlan, TensorPlan][] => {
    const other = others.get(tensor.name);
    return other && other.elements === tensor.elements ? [[tensor, other]] : [];
  });
}

interface OverlapOptions {
  engine: Backend;
  /** Elements of one tile; counts do not depend on it. */
  tileElements?: number;
  signal?: AbortSignal;
  onTensor?(overlap: MaskOverlap): void;
}

type Side = Ready & { read: ReadTensor };

/** Counts, tensor by tensor, what both plans keep of a model. @throws AmalgamError `NonFinite`, `Canceled` */
export async function countOverlaps(
  sides: readonly [Side, Side],
  model: string,
  { engine, tileElements, signal, onTensor }: OverlapOptions,
): Promise<MaskOverlap[]> {
  const pairs = trimmedByBoth([sides[0].plan, sides[1].plan], model);
  const all = [...pairs.flat(), ...sides.flatMap(({ plan }) => measuredTensors(plan, methodById))];
  const work = openWorkspaceFor(all, methodById, engine, tileElements);
  try {
    const [maskA, maskB] = [
      await openMasks(sides[0], model, work, signal),
      await openMasks(sides[1], model, work, signal),
    ];
    const overlaps: MaskOverlap[] = [];
    for (const [a, b] of pairs) {
      const [first, second] = [await maskA(a), await maskB(b)];
      const overlap: MaskOverlap = {
        name: a.name,
        elements: a.elements,
        kept: [bitCount(first), bitCount(second)],
        both: bitCount(first.map((word, i) => word & second[i]!)),
      };
      overlaps.push(overlap);
      onTensor?.(overlap);
    }
    return overlaps;
  } finally {
    work.close();
  }
}

/** Masks of a model under one plan, by tensor; measures the whole model first where the method needs it. */
async function openMasks(
  { plan, prepared, read }: Side,
  model: string,
  work: Workspace,
  signal: AbortSignal | undefined,
): Promise<(tensor: TensorPlan) => Promise<Uint32Array>> {
  const { seed = 0, nonFinite = 'stop' } = plan.recipe.amalgam;
  const wholeModel = await measureWholeModel({
    ...{ plan, methods: methodById, work, engine: work.engine, read, seed, nonFinite },
    onTensor: () => throwIfCanceled(signal),
  });
  return async (tensor) => {
    throwIfCanceled(signal);
    const method = methodOf(tensor);
    if (method.compute.kind !== 'delta') throw new Error(`${tensor.method} keeps no masks`);
    const task = openComputed(tensor, method, work, read, prepared, true);
    try {
      const settings = {
        preset: method.compute.preset(tensor.parameters),
        ...{ seed, nonFinite },
        ...(wholeModel ? { wholeModel } : {}),
        ...(prepared ? { prepared } : {}),
      };
      const index = tensor.models.findIndex(({ id }) => id === model);
      return await keptMask(task, settings, index);
    } finally {
      task.close();
    }
  };
}

function methodOf({ method }: TensorPlan): MergeMethod {
  return methodById.get(method)!;
}

/** How many bits are 1: pairs, nibbles and bytes are added up side by side. */
function bitCount(words: Uint32Array): number {
  let bits = 0;
  for (let word of words) {
    word -= (word >>> 1) & 0x55555555;
    word = (word & 0x33333333) + ((word >>> 2) & 0x33333333);
    bits += Math.imul((word + (word >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
  }
  return bits;
}
