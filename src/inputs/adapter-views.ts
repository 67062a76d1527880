/** What an adapter makes of the tensors of its base, by the rules of PEFT (tuners/lora/layer.py). */
import { isWeightDtype } from '../formats/dtype';
import { canonicalName } from '../models/families';
import { splitLayer } from '../models/tensor-role';
import type { Adapter, AdapterUpdate } from './adapter';
import type { Model, ModelTensor } from './model';
import { nameSome, type Problems } from './problems';
import type { LowRank } from './tensor-view';

/**
 * Applies an adapter to the tensors of a model, in place: low-rank updates, scaled biases, and tensors that take the
 * place of the base's. A head of its own unties a tied model. What does not fit goes to `problems`, one problem for
 * all tensors with the same fault.
 */
export function applyAdapter(model: Model, adapter: Adapter, problems: Problems): void {
  const short = (name: string) => canonicalName(name, model.checkpoint.family);
  const replaces = new Map([...adapter.replaces].map(([name, ref]) => [short(name), ref]));
  const updates = new Map([...adapter.updates].map(([module, u]) => [short(`${module}.weight`), u]));
  untie(model, replaces.has(model.head ?? '') || updates.has(model.head ?? ''));

  const missing: string[] = [];
  for (const [name, origin] of replaces) {
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
    reportMissing(model, adapter, missing, replaces.size + updates.size + biases, problems);
  }
  noteEmbedding(model, adapter, replaces.has(model.embedding ?? ''), problems);
}

/** Gives a tied model a head of its own, which starts as its embedding. */
function untie(model: Model, touched: boolean): void {
  const { embedding, head, tied } = model;
  const start = embedding === undefined ? undefined : model.tensors.get(embedding);
  if (!touched || !tied || head === undefined || !start) return;
  model.tied = false;
  model.tensors.set(head, { ...start, name: head });
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

function noteEmbedding(model: Model, adapter: Adapter, replaced: boolean, problems: Problems): void {
  if (!replaced || !model.tied) return;
  problems.add({
    severity: 'note',
    code: 'TiedEmbeddingReplaced',
    message: `${adapter.path} brings its own embedding for ${model.checkpoint.path}, whose head is tied to it: the head follows.`,
    remedy: 'Nothing to do.',
  });
}
