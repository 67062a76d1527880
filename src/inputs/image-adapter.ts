/** Opening a LoRA of an image or video model: one file of weights whose keys say what an adapter_config.json says elsewhere. */

import { AmalgamError } from '../errors';
import { isWeightDtype } from '../formats/dtype';
import {
  type ImageNaming,
  type ImagePart,
  imageKey,
  imagePath,
  isKohya,
  otherImagePart,
} from '../formats/image-lora';
import { displayName } from '../formats/names';
import type { StoredTensor } from '../formats/safetensors-header';
import { SHARD_INDEX } from '../formats/shard-index';
import { findFile, type ModelFile, type ModelFolder } from '../sources/model-folder';
import type { Adapter, AdapterUpdate, RowsUpdate } from './adapter';
import { readHeader, tensorRef } from './header';
import {
  inputDora,
  lohaUpdate,
  lokrUpdate,
  oftUpdate,
  type Parts,
  type RefuseParts,
  scaleOf,
  withNorms,
} from './image-kinds';
import { madeTensor } from './kind-updates';
import type { TensorRef } from './tensor-view';

/** The only file of weights of a folder that says nothing else about itself. */
function onlyWeights(folder: ModelFolder): ModelFile | undefined {
  if (['config.json', 'adapter_config.json', SHARD_INDEX].some((name) => findFile(folder, name)))
    return undefined;
  const weights = folder.files.filter(({ path }) => path.endsWith('.safetensors'));
  return weights.length === 1 ? weights[0] : undefined;
}

/**
 * Opens the LoRA of an image or video model, by the header of its weights.
 *
 * α of a module stands in a tensor of its own, so it is read with the factors: they are scaled, and act unscaled.
 * @returns undefined for a folder with other weights
 * @throws AmalgamError `AdapterUnsupported` naming the key that is no factor, `AdapterInvalid` for half a pair or odd shapes, and
 *   what the header's parser throws
 */
export async function openImageLora(
  folder: ModelFolder,
  path: string = folder.path,
  signal?: AbortSignal,
): Promise<Adapter | undefined> {
  const weightFile = onlyWeights(folder);
  if (!weightFile) return undefined;
  const header = await readHeader(weightFile, path, signal);
  const label = `${path}/${weightFile.path}`;
  const isLora = [...header.keys()].some((key) => {
    const { module, part } = imageKey(key) ?? {};
    const isChange = part !== undefined && !['alpha', 'magnitude', 'rescale'].includes(part);
    return module !== undefined && isChange && (imagePath(module) || isKohya(module));
  });
  const others = [...header.keys()].flatMap((key) => otherImagePart(key) ?? []);
  if (!isLora && others.length === 0) return undefined;
  const { modules, naming } = sorted(header, label);
  const updates = new Map<string, AdapterUpdate>();
  const rows = new Map<string, RowsUpdate>();
  for (const [module, stored] of modules) {
    const parts = Object.fromEntries(
      Object.entries(stored).map(([part, tensor]) => [part, tensorRef(path, weightFile, tensor)]),
    );
    const update = changeOf(module, parts, label);
    if ('group' in update) rows.set(module, update);
    else updates.set(module, update);
  }
  const rank = [...updates.values()].reduce((most, update) => Math.max(most, update.rank), 1);
  const isDora = [...updates.values()].some(({ magnitude }) => magnitude);
  return {
    kind: 'adapter',
    ...{ path, folder, updates, weightFile },
    image: naming,
    ...(rows.size > 0 && { rows }),
    config: {
      ...{ fileName: label, type: 'LORA', raw: new Map(), rank, alpha: rank, rsLora: false },
      ...{ dora: isDora, fanInFanOut: false, loraBias: false, bias: 'none', modulesToSave: [] },
      ...{ rankPatterns: [], alphaPatterns: [], ensureWeightTying: false, targetParameters: [], unknown: [] },
    },
    ...{ origins: new Map(), replaces: new Map(), tokenRows: new Map(), modules: new Map() },
    ...{ ignored: [], untargeted: [] },
  };
}

type StoredParts = Partial<Record<ImagePart, StoredTensor>>;

/** Parts by the paths of their modules. @throws AmalgamError `AdapterUnsupported`, `AdapterInvalid` */
function sorted(header: ReadonlyMap<string, StoredTensor>, label: string) {
  const modules = new Map<string, StoredParts>();
  let naming: ImageNaming | undefined;
  for (const stored of header.values()) {
    const key = imageKey(stored.name);
    const what = otherImagePart(stored.name);
    if (!key || what !== undefined) {
      throw unsupported(
        `${displayName(label)} holds ${what ?? 'a tensor that is no part of a LoRA'}, “${displayName(stored.name)}”.`,
      );
    }
    if (!isWeightDtype(stored.dtype)) {
      throw unsupported(
        `${displayName(label)} holds “${displayName(stored.name)}” as ${stored.dtype}; F32, F16 and BF16 can be merged.`,
      );
    }
    const placed = imagePath(key.module);
    if (!placed && !isKohya(key.module)) {
      throw unsupported(
        `${displayName(label)} holds factors of “${displayName(key.module)}”, which is no module of an image model.`,
      );
    }
    const path = placed?.path ?? key.module;
    const prefixes = { ...naming?.prefixes, ...placed?.naming.prefixes };
    if (placed) naming = { ...(naming ?? placed.naming), prefixes };
    if (placed?.naming.original) naming = { ...naming!, original: true };
    const parts = modules.get(path) ?? {};
    if (parts[key.part]) throw invalid(`${displayName(label)} has two tensors for ${displayName(path)}.`);
    modules.set(path, { ...parts, [key.part]: stored });
  }
  return {
    modules,
    naming: naming ?? ({ convention: 'kohya', original: false, prefixes: {} } satisfies ImageNaming),
  };
}

/** The change of a module, of whatever kind its parts are. @throws AmalgamError `AdapterInvalid`, `AdapterUnsupported` */
function changeOf(module: string, parts: Parts, label: string): AdapterUpdate | RowsUpdate {
  const refuse: RefuseParts = (what) => {
    throw unsupported(`${displayName(module)} of ${displayName(label)} has ${what}.`);
  };
  const has = (begin: string) => Object.keys(parts).some((part) => part.startsWith(begin));
  const { magnitude } = parts;
  if (has('oft_')) return magnitude ? refuse('OFT with a DoRA scale') : oftUpdate(parts, refuse);
  const change = has('lokr_')
    ? lokrUpdate(parts, refuse)
    : has('hada_')
      ? lohaUpdate(parts, refuse)
      : updateOf(module, parts, label);
  if (!magnitude) return change;
  const { shape } = magnitude;
  const outputs = 'group' in change ? change.outputs : change.b.shape[0]!;
  const size = shape.reduce((n, extent) => n * extent, 1);
  if (shape[0] === outputs && size === outputs) {
    const perOutput = { ...magnitude, shape: [outputs] };
    return 'group' in change ? withNorms(change, perOutput) : { ...change, magnitude: perOutput };
  }
  if (
    'group' in change ||
    shape.length < 2 ||
    shape[0] !== 1 ||
    change.a.shape.slice(1).every((n) => n !== size)
  ) {
    return refuse(`a DoRA scale of [${shape}] for ${outputs} outputs`);
  }
  return inputDora(change, { ...magnitude, shape: [1, size] });
}

function updateOf(module: string, { a, b, mid, alpha }: Parts, label: string): AdapterUpdate {
  const about = `${displayName(module)} of ${displayName(label)}`;
  if (!a || !b) throw invalid(`${about} has no ${a ? 'second' : 'first'} factor.`);
  const [rank = 0, inputs = 0] = a.shape;
  const inner = mid ? mid.shape[1] : rank;
  const fits =
    rank > 0 &&
    a.shape.length >= 2 &&
    b.shape.length >= 2 &&
    b.shape.slice(2).every((extent) => extent === 1) &&
    (mid ? b.shape[1] === mid.shape[0] && inner === rank && mid.shape.length === 4 : b.shape[1] === rank);
  if (!fits) {
    throw invalid(
      `${about} has factors of [${a.shape}] and [${b.shape}]${mid ? ` around [${mid.shape}]` : ''}.`,
    );
  }
  const scales = alpha ? { alpha } : {};
  const whole = (): TensorRef => {
    if (mid) {
      // LoCon's Tucker form: a kernel [rank, rank, h, w] between two factors without one (LyCORIS, modules/locon.py)
      const [h, w] = mid.shape.slice(2) as [number, number];
      const area = h * w;
      const parts = { a, mid, ...scales };
      return madeTensor(parts, [mid.shape[0]!, inputs, h, w], (values) => {
        const scale = scaleOf(values, rank);
        return Float32Array.from({ length: mid.shape[0]! * inputs * area }, (_, i) => {
          const [r, c, at] = [Math.floor(i / (inputs * area)), Math.floor(i / area) % inputs, i % area];
          let sum = 0;
          for (let s = 0; s < rank; s++)
            sum += values.mid![(r * rank + s) * area + at]! * values.a![s * inputs + c]!;
          return scale * sum;
        });
      });
    }
    if (!alpha) return a;
    return madeTensor({ a, ...scales }, a.shape, (values) => {
      const scale = scaleOf(values, rank);
      if (scale === 1) return values.a!;
      const scaled = new Float32Array(values.a!.length);
      for (let i = 0; i < scaled.length; i++) scaled[i] = scale * values.a![i]!;
      return scaled;
    });
  };
  return { a: whole(), b, kind: 'linear', rank: mid ? mid.shape[0]! : rank, scale: 1 };
}

function invalid(message: string): AmalgamError {
  return new AmalgamError('AdapterInvalid', message, 'The file is damaged. Get it again.');
}

function unsupported(message: string): AmalgamError {
  return new AmalgamError(
    'AdapterUnsupported',
    message,
    'LoRA, LoCon, LoHa, LoKr, OFT and DoRA of image models are read; merge this one with the tool that made it.',
  );
}
