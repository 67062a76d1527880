/** What an adapter makes of the tensors of its base, by the rules of PEFT (tuners/lora/layer.py). */
import { isWeightDtype } from '../formats/dtype';
import { canonicalName } from '../models/families';
import { splitLayer } from '../models/tensor-role';
import type { Adapter, AdapterUpdate } from './adapter';
import type { Model, ModelTensor } from './model';
import { nameSome, type Problems } from './problems';
import type { LowRank, TensorRef } from './tensor-view';

/**
 * Applies an adapter to the tensors of a model, in place: tensors loaded over the base's, tensors of its own, low-rank
 * updates on top, and scaled biases. A tied model is untied where the adapter was trained with two different ends.
 * What does not fit goes to `problems`, one problem for all tensors with the same fault.
 */
export function applyAdapter(model: Model, adapter: Adapter, problems: Problems): void {
  const short = (name: string) => canonicalName(name, model.checkpoint.family);
  const named = <T>(map: ReadonlyMap<string, T>) =>
    new Map([...map].map(([name, value]) => [short(name), value]));
  const changes: Changes = {
    origins: named(adapter.origins),
    replaces: named(adapter.replaces),
    updates: new Map([...adapter.updates].map(([module, u]) => [short(`${module}.weight`), u])),
  };
  const all = changes.origins.size + changes.replaces.size + changes.updates.size;
  separateEnds(model, adapter, changes, problems);
  const { updates } = changes;
  const missing: string[] = [];
  for (const [name, origin] of [...changes.origins, ...changes.replaces]) {
    const tensor = model.tensors.get(name);
    if (!tensor) missing.push(name);
    else model.tensors.set(name, { ...tensor, view: { origin }, shape: origin.shape });
  }
  for (const [name, update] of updates) {
    const tensor = model.tensors.get(name);
    if (!tensor) missing.push(name);
    else model.tensors.set(name, updated(model, adapter, name, tensor, update, problems));
    if (!update.bias) continue;
    const biasName = name.replace(/weight$/, 'bias');
    const bias = model.tensors.get(biasName);
    if (!bias) missing.push(biasName);
    else {
      const addend = { tensor: update.bias, scale: update.scale };
      model.tensors.set(biasName, { ...bias, view: { ...bias.view, addend } });
    }
  }
  if (missing.length > 0) {
    const biases = [...updates.values()].filter((update) => update.bias).length;
    reportMissing(model, adapter, [...new Set(missing)], all + biases, problems);
  }
  noteIgnored(adapter, problems);
}

/** What an adapter does, by the name of the tensor without the family's prefix. */
interface Changes {
  origins: Map<string, TensorRef>;
  replaces: Map<string, TensorRef>;
  updates: Map<string, AdapterUpdate>;
}

/**
 * Makes the ends of a tied model what they were when the adapter was trained. PEFT wraps embedding and head each for
 * itself: factors on one, or a copy of one (`modules_to_save`), leave the other as the base has it, unless the config
 * says `ensure_weight_tying`; what is loaded over the one stored tensor is at both ends. (merge_and_unload then adds
 * the factors of either end to the tensor both share, which is another model than the one trained.)
 */
function separateEnds(model: Model, adapter: Adapter, changes: Changes, problems: Problems): void {
  const { embedding, head, tied, ref } = model;
  const { origins, replaces, updates } = changes;
  const stored = embedding === undefined ? undefined : model.tensors.get(embedding);
  if (!tied || embedding === undefined || head === undefined || !stored) return;
  const own = (name: string) => replaces.has(name) || updates.has(name);
  const note = (message: string) =>
    problems.add({ severity: 'note', code: 'TiedEndsAdapted', message, remedy: 'Nothing to do.' });
  if (adapter.config.ensureWeightTying && own(embedding)) {
    for (const map of [origins, replaces, updates]) map.delete(head);
    note(
      `${adapter.path} keeps the head of ${ref} tied to the embedding it changes (ensure_weight_tying): the head follows.`,
    );
    return;
  }
  if (!own(embedding) && !own(head) && !origins.has(head)) {
    if (origins.has(embedding))
      note(`${adapter.path} brings an embedding for ${ref}, whose head is tied to it: the head follows.`);
    return;
  }
  const shared = origins.get(embedding) ?? (own(head) ? origins.get(head) : undefined);
  const start = shared ? { ...stored, view: { origin: shared }, shape: shared.shape } : stored;
  model.tied = false;
  model.tensors.set(embedding, start);
  model.tensors.set(head, { ...start, name: head });
  const both = own(embedding) && (own(head) || origins.has(head));
  note(
    `${adapter.path} changes ${both ? 'embedding and head' : own(embedding) ? 'the embedding' : 'the head'} of ${ref}, which are one tensor there. The output has ${both ? 'each as it was trained' : `the ${own(embedding) ? 'head' : 'embedding'} as the adapter left it`}, so it is not tied (tie_word_embeddings: false).`,
  );
  const rows = replaces.get(embedding)?.shape[0];
  if (rows === undefined || rows === start.shape[0] || replaces.has(head) || origins.has(head)) return;
  problems.add({
    severity: 'error',
    code: 'AdapterInvalid',
    message: `${adapter.path} brings an embedding of ${rows} rows for ${ref}, but not the head it was trained with, which has ${start.shape[0]} rows here.`,
    remedy: 'Save the adapter with its head too (save_embedding_layers=True, or lm_head in modules_to_save).',
    tensors: [embedding, head],
  });
}

/** Says which keys of the weight file change nothing, and which fields of the config are not known. */
function noteIgnored({ path, ignored, config }: Adapter, problems: Problems): void {
  if (config.unknown.length > 0) {
    problems.add({
      severity: 'warning',
      code: 'AdapterFieldsUnknown',
      message: `The config of ${path} says ${nameSome(config.unknown)}, which is not known here and has no effect.`,
      remedy:
        'Make sure that it only concerns training; else merge the adapter with PEFT and use the result.',
    });
  }
  if (ignored.length === 0) return;
  problems.add({
    severity: 'note',
    code: 'AdapterKeysUnused',
    message: `${ignored.length} tensors of ${path} change nothing, as in PEFT: ${nameSome(ignored)}.`,
    remedy: 'Nothing to do.',
  });
}

function updated(
  model: Model,
  adapter: Adapter,
  name: string,
  tensor: ModelTensor,
  update: AdapterUpdate,
  problems: Problems,
): ModelTensor {
  const layout = layoutOf(model, adapter, name, tensor.shape, update);
  const { a, b, rank, scale, magnitude } = update;
  if (layout === undefined) {
    problems.add({
      severity: 'error',
      code: 'AdapterShape',
      message: `The factors of ${adapter.path} do not fit the weights of ${model.checkpoint.path}.`,
      remedy: `Put the adapter on the base it was trained on${named(adapter)}.`,
      tensors: [`${name} [${tensor.shape}] with factors [${b.shape}] · [${a.shape}]`],
    });
    return tensor;
  }
  if (!isWeightDtype(tensor.dtype)) {
    problems.add({
      severity: 'error',
      code: 'DtypeUnsupported',
      message: `${adapter.path} changes tensors that ${model.checkpoint.path} stores as ${tensor.dtype}, which cannot be computed with.`,
      remedy: 'Use a copy of the base in F32, F16 or BF16.',
      tensors: [name],
    });
  }
  if (magnitude && layout === 'transposed') {
    problems.add({
      severity: 'error',
      code: 'AdapterUnsupported',
      message: `${adapter.path} uses DoRA on weights that are stored as [in, out], which Amalgam cannot merge.`,
      remedy:
        'Merge this adapter into its base with PEFT (merge_and_unload) and use the result as a full model.',
      tensors: [name],
    });
  }
  if (adapter.config.fanInFanOut !== (layout === 'transposed') && update.kind === 'linear') {
    problems.add({
      severity: 'note',
      code: 'FanInFanOut',
      message: `${adapter.path} says fan_in_fan_out: ${adapter.config.fanInFanOut}, but ${model.checkpoint.path} stores the weights the other way; what is stored counts, as in PEFT.`,
      remedy: 'Nothing to do.',
      tensors: [name],
    });
  }
  const lowRank: LowRank = { a, b, rank, scale, layout, ...(magnitude ? { magnitude } : {}) };
  return { ...tensor, view: { ...tensor.view, lowRank } };
}

/**
 * How the factors lie on the stored weight: told by the shapes, and for a square weight by the family (GPT-2's Conv1D
 * stores [in, out]), or for an unknown family by the adapter's own word.
 */
function layoutOf(
  model: Model,
  adapter: Adapter,
  name: string,
  [rows, columns, ...more]: readonly number[],
  { kind, a, b }: AdapterUpdate,
): LowRank['layout'] | undefined {
  const inputs = a.shape[1];
  const outputs = b.shape[0];
  const transposed = more.length === 0 && rows === inputs && columns === outputs;
  if (kind === 'embedding') return transposed ? 'transposed' : undefined;
  const linear = more.length === 0 && rows === outputs && columns === inputs;
  if (linear !== transposed) return linear ? 'linear' : 'transposed';
  if (!linear) return undefined;
  const { family } = model.checkpoint;
  const conv1d = family
    ? family.linearStorage === 'in_out' && splitLayer(name) !== null
    : adapter.config.fanInFanOut;
  return conv1d ? 'transposed' : 'linear';
}

function reportMissing(
  model: Model,
  adapter: Adapter,
  missing: string[],
  all: number,
  problems: Problems,
): void {
  const task = adapter.config.taskType;
  problems.add({
    severity: 'error',
    code: 'AdapterModuleMissing',
    message: `${missing.length} of the ${all} tensors that ${adapter.path} changes do not exist in ${model.checkpoint.path}: ${nameSome(missing)}.`,
    remedy: `Put the adapter on the base it was trained on${named(adapter)}${task ? `, in the form for ${task}` : ''}, or leave it out.`,
    tensors: missing,
  });
}

/** `, roberta-base` where the adapter says what it was trained on. */
function named({ config }: Adapter): string {
  return config.baseModel === undefined ? '' : `, ${config.baseModel}`;
}
