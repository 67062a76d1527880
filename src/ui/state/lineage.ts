/** How a contributor is related to the chosen base, as far as its own facts tell. Pure. */

import { cachedModelId, isRepoId } from '../../formats/hub-id';
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
      text: `${model.layers} layers, not ${base.layers}`,
      tone: 'warn',
      why: `It has ${model.layers} layers, the base has ${base.layers}.`,
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
  if (parent === undefined) {
    return {
      text: 'adapter',
      tone: 'plain',
      why: `${summary}. It does not say which base it was trained on.`,
    };
  }
  if (!base) return { text: 'adapter', tone: 'plain', why: `${summary}, trained on ${parent}.` };
  return isBaseOf(parent, base)
    ? { text: 'matches base', tone: 'ok', why: `${summary}, trained on ${parent}.` }
    : {
        text: 'of another base',
        tone: 'warn',
        why: `${summary}, trained on ${parent}, not on ${base.title}.`,
      };
}

/**
 * Whether an adapter that names `parent` as its base (`base_model_name_or_path`) means this model. What it names is an id
 * on the Hub, or a path on the computer it was trained on: a folder is known by its own name alone.
 */
export function isBaseOf(parent: string, model: Pick<ModelInfo, 'ref' | 'origin'>): boolean {
  const asked = cachedModelId(parent) ?? parseModelRef(parent).model.path;
  const { path } = parseModelRef(model.ref).model;
  const own = cachedModelId(path) ?? path;
  const last = (name: string) => name.split(/[/\\]/).filter(Boolean).at(-1)?.toLowerCase();
  if (asked === own) return true;
  const bothOnHub = isRepoId(asked) && asked.includes('/') && (model.origin === 'hub' || own !== path);
  return !bothOnHub && model.origin !== 'sample' && last(asked) === last(own);
}
