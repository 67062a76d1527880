/** How a contributor is related to the chosen base, by its own config and card. Pure. */

import { cachedModelId, isRepoId, namesOneModel } from '../../formats/hub-id';
import { counted } from '../../formats/quantity';
import { parseModelRef } from '../../formats/recipe';
import type { ModelInfo } from '../../reports/models';

interface Lineage {
  text: string;
  tone: 'ok' | 'plain' | 'warn';
  /** The long form, for the tooltip. */
  why: string;
}

/** The badge of a contributor's card. */
export function lineage(model: ModelInfo, base: ModelInfo | undefined): Lineage {
  if (model.kind === 'adapter') return adapterLineage(model, base);
  if (base && model.family !== undefined && base.family !== undefined && model.family !== base.family) {
    return {
      text: `${model.family}, not ${base.family}`,
      tone: 'warn',
      why: `Its architecture (${model.family}) is not that of the base (${base.family}).`,
    };
  }
  if (base?.layers !== undefined && model.layers !== undefined && model.layers !== base.layers) {
    return {
      text: `${counted(model.layers, 'layer')}, not ${base.layers}`,
      tone: 'warn',
      why: `It has ${counted(model.layers, 'layer')}, the base has ${base.layers}.`,
    };
  }
  return {
    text: 'fine-tune',
    tone: 'plain',
    why: 'A complete checkpoint: its change is its weights minus the base.',
  };
}

function adapterLineage(model: ModelInfo, base: ModelInfo | undefined): Lineage {
  const parent = model.adapter?.baseModel;
  const summary = model.adapter?.summary ?? 'Adapter';
  const trained =
    parent === undefined
      ? `${summary}. It does not say which base it was trained on.`
      : `${summary}, trained on ${parent}.`;
  const fit = base && fitsWeights(model, base);
  if (base && fit === false) {
    const why = `${trained} Its factors do not fit the weights of ${base.title}.`;
    return { text: 'of another base', tone: 'warn', why };
  }
  if (base && parent !== undefined && isBaseOf(parent, base))
    return { text: 'matches base', tone: 'ok', why: trained };
  if (base && fit)
    return { text: 'fits', tone: 'ok', why: `${trained} Its factors fit the weights of ${base.title}.` };
  return { text: 'adapter', tone: 'plain', why: trained };
}

/** Whether the factors of an adapter fit the weights of a model; undefined where the shapes of one are not known. */
export function fitsWeights(adapter: ModelInfo, model: ModelInfo): boolean | undefined {
  const [wanted, stored] = [adapter.weights, model.weights];
  if (!wanted || !stored || model.kind !== 'checkpoint') return undefined;
  const names = Object.keys(stored);
  return Object.entries(wanted).every(([name, shapes]) => {
    const found = names.find(
      (other) => other === name || other.endsWith(`.${name}`) || name.endsWith(`.${other}`),
    );
    const turned = (shape: string) => shape.split('×').reverse().join('×');
    return (
      found !== undefined &&
      shapes.every((shape) => stored[found]!.some((other) => other === shape || other === turned(shape)))
    );
  });
}

/**
 * Whether an adapter that names `parent` as its base (`base_model_name_or_path`) means this model. What it names is an id
 * on the Hub, or a path on the computer it was trained on: a folder is known by its own name alone.
 */
export function isBaseOf(parent: string, model: Pick<ModelInfo, 'ref' | 'origin'>): boolean {
  const asked = cachedModelId(parent) ?? parseModelRef(parent).model.path;
  const { path } = parseModelRef(model.ref).model;
  const own = cachedModelId(path) ?? path;
  if (asked === own) return true;
  const bothOnHub = isRepoId(asked) && asked.includes('/') && (model.origin === 'hub' || own !== path);
  if (bothOnHub) return namesOneModel(asked, own);
  const last = (name: string) => name.split(/[/\\]/).filter(Boolean).at(-1) ?? '';
  return model.origin !== 'sample' && namesOneModel(last(asked), last(own));
}
