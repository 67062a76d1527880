/** Views of base tensors with an adapter applied, by the rules of PEFT (tuners/lora/layer.py). */

import { isWeightDtype } from '../formats/dtype';
import { fullPrecisionName } from '../formats/hub-id';
import { counted } from '../formats/quantity';
import { tensorKey } from '../models/families';
import { splitLayer } from '../models/tensor-role';
import type { PlanProblem } from '../reports/plan';
import { type Adapter, type AdapterUpdate, noteIgnored, type OwnModule } from './adapter';
import { type Applying, changedByKind, changedRows, madeTensor, scaledColumns } from './kind-updates';
import type { Model, ModelTensor } from './model';
import { nameSome, type Problems } from './problems';
import { mappedTensor } from './row-map';
import type { LowRank, RowMap, TensorRef } from './tensor-view';

// Low-rank updates of fused expert weights (PEFT's `target_parameters`), on checkpoints that store them fused or apart.

/** Families whose fused experts are [experts, in, out] (`is_transposed` in transformers). */
const IN_OUT: readonly string[] = ['gpt_oss', 'llama4', 'llama4_text'];
/** Projections of a fused parameter, in the order of its outputs. */
const PROJECTIONS: Readonly<Record<string, readonly string[]>> = {
  gate_up_proj: ['gate_proj', 'up_proj'],
  down_proj: ['down_proj'],
};

/**
 * Updates the experts of one layer. For expert e, A is rows [e·r, (e+1)·r) of lora_A, and B every n-th column of lora_B
 * from e on (PEFT tuners/lora/layer.py, ParamWrapper.get_delta_weight).
 *
 * @param path key of the parameter: `layers.0.mlp.experts.gate_up_proj`
 * @returns names the base does not have
 */
function updateExperts(
  on: Applying,
  path: string,
  { a, b, rank, scale, experts = 1 }: AdapterUpdate,
): string[] {
  const { model, adapter, problems } = on;
  const [outputs, inputs] = [b.shape[0]!, a.shape[1]!];
  /** B of an expert, [outputs, rank]. */
  const column = (values: Float32Array, e: number, o: number, k: number) =>
    values[o * rank * experts + k * experts + e]!;
  const fused = model.tensors.get(path);
  if (fused) {
    const [count, rows, columns] = fused.shape as [number, number, number];
    const inOut = rows === inputs && columns === outputs;
    const transposed =
      inOut && (inputs !== outputs || IN_OUT.includes(model.checkpoint.config?.modelType ?? ''));
    if (count !== experts || !(inOut || (rows === outputs && columns === inputs))) {
      problems.add(
        misfit(adapter, path, `factors of ${counted(experts, 'expert')}, [${b.shape}] · [${a.shape}]`),
      );
      return [];
    }
    const origin = changedRows(
      { origin: fused.view.origin, width: columns },
      { a, b },
      ({ values: { a: A, b: B } }) =>
        (row, index) => {
          const [e, i] = [Math.floor(index / rows), index % rows];
          for (let c = 0; c < columns; c++) {
            const [o, n] = transposed ? [c, i] : [i, c];
            let sum = 0;
            for (let k = 0; k < rank; k++) sum += column(B!, e, o, k) * A![(e * rank + k) * inputs + n]!;
            row[c]! += scale * sum;
          }
        },
    );
    model.tensors.set(path, { ...fused, view: { ...fused.view, origin } });
    return [];
  }
  return updateSeparate(on, path, { a, b, rank, scale, experts, column });
}

interface Pairs extends Pick<AdapterUpdate, 'a' | 'b' | 'rank' | 'scale'> {
  experts: number;
  column(values: Float32Array, expert: number, output: number, k: number): number;
}

/** Experts that are stored apart: an ordinary low-rank update each, gate and up with half of the outputs. */
function updateSeparate(
  { model, adapter, problems }: Applying,
  path: string,
  { a, b, rank, scale, experts, column }: Pairs,
): string[] {
  const at = path.lastIndexOf('.');
  const projections = PROJECTIONS[path.slice(at + 1)] ?? [];
  const inputs = a.shape[1]!;
  const outputs = b.shape[0]! / projections.length;
  const missing: string[] = [];
  for (let e = 0; e < experts; e++) {
    for (const [half, projection] of projections.entries()) {
      const name = tensorKey(`${path.slice(0, at)}.${e}.${projection}.weight`, model.checkpoint.family);
      const tensor = model.tensors.get(name);
      if (!tensor) missing.push(name);
      else if (tensor.shape[0] !== outputs || tensor.shape[1] !== inputs) {
        problems.add(
          misfit(adapter, name, `factors [${b.shape}] · [${a.shape}] for a weight of [${tensor.shape}]`),
        );
      } else {
        const lowRank = {
          a: madeTensor({ a }, [rank, inputs], ({ a: A }) =>
            A!.slice(e * rank * inputs, (e + 1) * rank * inputs),
          ),
          b: madeTensor({ b }, [outputs, rank], ({ b: B }) =>
            Float32Array.from({ length: outputs * rank }, (_, i) =>
              column(B!, e, half * outputs + Math.floor(i / rank), i % rank),
            ),
          ),
          rank,
          scale,
          layout: 'linear' as const,
        };
        model.tensors.set(name, { ...tensor, view: { ...tensor.view, lowRank } });
      }
    }
  }
  return missing;
}

/**
 * Applies an adapter to the tensors of a model, in place: tensors loaded over the base's, tensors of its own, low-rank updates
 * on top, and scaled biases. A tied model is untied where the adapter was trained with two different ends. Tensors that do not
 * fit go to `problems`, one problem for all tensors with the same fault.
 */
export function applyAdapter(model: Model, adapter: Adapter, problems: Problems): void {
  const on: Applying = { model, adapter, problems };
  const key = (name: string) => tensorKey(name, model.checkpoint.family);
  const named = <T>(map: ReadonlyMap<string, T>, end = '') =>
    new Map([...map].map(([name, value]) => [key(name + end), value]));
  const single = [...adapter.updates].filter(([, { experts }]) => experts === undefined);
  const fused = [...adapter.updates].filter(([, { experts }]) => experts !== undefined);
  const image = adapter.place?.({ path: model.checkpoint.path, tensors: model.tensors }, problems);
  const changes: Changes = {
    origins: named(adapter.origins),
    replaces: named(adapter.replaces),
    updates: image?.updates ?? named(new Map(single), '.weight'),
    tokenRows: named(adapter.tokenRows, '.weight'),
    modules: named(adapter.modules, '.weight'),
  };
  const all = Object.values(changes).reduce(
    (sum, map: ReadonlyMap<string, unknown>) => sum + map.size,
    fused.length,
  );
  separateEnds(on, changes);
  const missing: string[] = [...(image?.missing ?? [])];
  const biasless: string[] = [];
  let biases = 0;
  const change = (name: string, to: (tensor: ModelTensor) => ModelTensor) => {
    const tensor = model.tensors.get(name);
    if (tensor) model.tensors.set(name, to(tensor));
    else missing.push(name);
  };
  for (const [name, origin] of [...changes.origins, ...changes.replaces]) {
    change(name, (tensor) => ({ ...tensor, view: { origin }, shape: origin.shape }));
  }
  for (const [name, { rows, tokens }] of changes.tokenRows) {
    change(name, (tensor) => withRows(on, tensor, rows, tokens));
  }
  for (const [name, update] of changes.updates) {
    change(name, (tensor) => updated(on, name, tensor, update));
    const { bias, scale } = update;
    if (!bias) continue;
    biases++;
    const biasName = name.replace(/weight$/, 'bias');
    if (model.tensors.has(name) && !model.tensors.has(biasName)) biasless.push(biasName);
    else
      change(biasName, (tensor) => ({
        ...tensor,
        view: { ...tensor.view, addend: { tensor: bias, scale } },
      }));
  }
  for (const [name, changed] of image?.rows ?? []) {
    change(name, (tensor) => ({ ...tensor, view: { ...tensor.view, origin: changed(tensor.view.origin) } }));
  }
  for (const [path, update] of fused) missing.push(...updateExperts(on, key(path), update));
  for (const [name, own] of changes.modules) {
    change(name, (tensor) => changedByKind(on, name, tensor, own));
  }
  if (missing.length > 0)
    reportMissing(
      on,
      [...new Set(missing)],
      image ? adapter.updates.size + (adapter.rows?.size ?? 0) : all + biases,
    );
  if (biasless.length > 0) {
    problems.error(
      'AdapterModuleMissing',
      `${adapter.path} adds biases (lora_bias) where ${model.checkpoint.path} has none: ${nameSome(biasless)}.`,
      'The merged model would have no place for them; PEFT does not merge it either. Load the adapter beside its base, or train it without lora_bias.',
      biasless,
    );
  }
  noteIgnored(adapter, problems);
}

/** Changes that an adapter makes, by the name of the tensor without the family's prefix. */
interface Changes {
  origins: Map<string, TensorRef>;
  replaces: Map<string, TensorRef>;
  updates: Map<string, AdapterUpdate>;
  tokenRows: Map<string, { rows: TensorRef; tokens: readonly number[] }>;
  modules: Map<string, OwnModule>;
}

/** A weight with some rows replaced. */
function withRows(
  { adapter, problems }: Applying,
  tensor: ModelTensor,
  rows: TensorRef,
  tokens: readonly number[],
): ModelTensor {
  const { origin } = tensor.view;
  const count = tensor.shape[0]!;
  if (rows.shape[1] !== tensor.shape[1] || tokens.some((token) => token >= count)) {
    problems.add(misfit(adapter, tensor.name, `rows [${rows.shape}] for a weight of [${tensor.shape}]`));
    return tensor;
  }
  const source = new Int32Array(count);
  const row = Int32Array.from({ length: count }, (_, i) => i);
  for (const [i, token] of tokens.entries()) {
    source[token] = 1;
    row[token] = i;
  }
  const map: RowMap = {
    axis: 'rows',
    sources: [{ tensor: origin }, { tensor: rows }],
    source,
    row,
  };
  return { ...tensor, view: { ...tensor.view, origin: mappedTensor(origin, map) } };
}

/**
 * Makes the ends of a tied model what they were when the adapter was trained. PEFT wraps embedding and head each for
 * itself: factors on one, or a copy of one (`modules_to_save`), leave the other as the base has it, unless the config
 * says `ensure_weight_tying`; what is loaded over the one stored tensor is at both ends. (merge_and_unload then adds
 * the factors of either end to the tensor both share, which is another model than the one trained.)
 */
function separateEnds({ model, adapter, problems }: Applying, changes: Changes): void {
  const { embedding, head, tied, ref } = model;
  const { origins, replaces, updates, tokenRows, modules } = changes;
  const stored = embedding === undefined ? undefined : model.tensors.get(embedding);
  if (!tied || embedding === undefined || head === undefined || !stored) return;
  const own = (name: string) => replaces.has(name) || updates.has(name) || modules.has(name);
  const ownHead = own(head) || tokenRows.has(head);
  const note = (message: string) => problems.note('TiedEndsAdapted', message);
  if (adapter.config.ensureWeightTying && own(embedding)) {
    for (const map of Object.values(changes) as Map<string, unknown>[]) map.delete(head);
    note(
      `${adapter.path} keeps the head of ${ref} tied to the embedding it changes (ensure_weight_tying): the head follows.`,
    );
    return;
  }
  if (!own(embedding) && !ownHead && !origins.has(head)) {
    // trained rows are at both ends, as PEFT ties its token adapters
    if (origins.has(embedding) || tokenRows.has(embedding))
      note(
        `${adapter.path} changes the embedding of ${ref} in place, whose head is tied to it: the head follows.`,
      );
    return;
  }
  const shared = origins.get(embedding) ?? (ownHead ? origins.get(head) : undefined);
  const start = shared ? { ...stored, view: { origin: shared }, shape: shared.shape } : stored;
  model.tied = false;
  model.tensors.set(embedding, start);
  model.tensors.set(head, { ...start, name: head });
  const both = own(embedding) && (ownHead || origins.has(head));
  note(
    `${adapter.path} changes ${both ? 'embedding and head' : own(embedding) ? 'the embedding' : 'the head'} of ${ref}, whose embedding and head are one tensor. The output has ${both ? 'each as it was trained' : `the ${own(embedding) ? 'head' : 'embedding'} as the adapter left it`}, so it is not tied (tie_word_embeddings: false).`,
  );
}

function updated(on: Applying, name: string, tensor: ModelTensor, update: AdapterUpdate): ModelTensor {
  const { model, adapter, problems } = on;
  const layout = layoutOf(on, name, tensor.shape, update);
  const { a, b, rank, scale, magnitude } = update;
  if (layout === undefined) {
    problems.add(
      misfit(adapter, name, `factors [${b.shape}] · [${a.shape}] for a weight of [${tensor.shape}]`),
    );
    return tensor;
  }
  if (!isWeightDtype(tensor.dtype)) {
    problems.error(
      'DtypeUnsupported',
      `${adapter.path} changes tensors that ${model.checkpoint.path} stores as ${tensor.dtype}, which cannot be computed with.`,
      'Choose an output dtype (out_dtype) where these are plain numbers, or use a copy of the base in F32, F16 or BF16.',
      [name],
    );
  }
  if (adapter.config.fanInFanOut !== (layout === 'transposed') && update.kind === 'linear') {
    problems.note(
      'FanInFanOut',
      `${adapter.path} says fan_in_fan_out: ${adapter.config.fanInFanOut}, but ${model.checkpoint.path} stores the weights the other way; what is stored counts, as in PEFT.`,
      undefined,
      [name],
    );
  }
  const lowRank: LowRank = { a, b, rank, scale, layout, ...(magnitude ? { magnitude } : {}) };
  if (magnitude && layout === 'transposed') return scaledColumns(tensor, lowRank, magnitude);
  return { ...tensor, view: { ...tensor.view, lowRank } };
}

/**
 * Layout of the factors on the stored weight: by the shapes, and for a square weight by the family (GPT-2's Conv1D
 * stores [in, out]), or for an unknown family by the adapter's own word.
 */
function layoutOf(
  { model, adapter }: Applying,
  name: string,
  [rows, columns, ...more]: readonly number[],
  { kind, a, b }: AdapterUpdate,
): LowRank['layout'] | undefined {
  const [, inputs, ...kernel] = a.shape;
  const outputs = b.shape[0];
  // a kernel of one is also stored without it
  if (kernel.length > 0 || (adapter.image && more.length > 0)) {
    const area = (...shape: (number | undefined)[]) => shape.reduce<number>((n, extent = 0) => n * extent, 1);
    const fits = rows === outputs && area(columns, ...more) === area(inputs, ...kernel);
    return fits ? 'linear' : undefined;
  }
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

function reportMissing({ model, adapter, problems }: Applying, missing: string[], all: number): void {
  const task = adapter.config.taskType;
  problems.error(
    'AdapterModuleMissing',
    `${missing.length} of the ${counted(all, 'tensor')} that ${adapter.path} changes ${missing.length === 1 ? 'does' : 'do'} not exist in ${model.checkpoint.path}: ${nameSome(missing)}.`,
    `Put the adapter on the base it was trained on${trainedOn(adapter)}${task ? `, in the form for ${task}` : ''}, or leave it out.`,
    missing,
  );
}

// An adapter whose tensors are of other sizes than the weights of the base.

/** The problem of one tensor; those of one adapter are reported together. */
function misfit(adapter: Adapter, name: string, what: string): PlanProblem {
  return {
    severity: 'error',
    code: 'AdapterShape',
    message: `The tensors of ${adapter.path} do not fit the weights they are for.`,
    remedy: `Put the adapter on the base it was trained on${trainedOn(adapter)}.`,
    tensors: [`${name}: ${what}`],
  };
}

/** `, roberta-base` where the adapter names what it was trained on; of a quantized copy the model that it was made from. */
function trainedOn({ config: { baseModel } }: Adapter): string {
  if (baseModel === undefined) return '';
  const full = fullPrecisionName(baseModel);
  return baseModel.endsWith(full) ? `, ${baseModel}` : `, ${full} in full precision`;
}
