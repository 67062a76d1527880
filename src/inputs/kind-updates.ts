/** Weights under an adapter that is no LoRA: a product that streams like one, or rows changed on the host. */
import { AmalgamError } from '../errors';
import { booleanField, numberField } from '../formats/json-fields';
import { splitLayer } from '../models/tensor-role';
import type { Adapter, OwnModule } from './adapter';
import { changedRows, madeTensor, type Parts } from './derived';
import type { AdaptedModule, Rows } from './kinds/kind';
import type { Model, ModelTensor } from './model';
import type { Problems } from './problems';
import type { LowRank, TensorRef } from './tensor-view';

/** Most elements of a factor that is made of an adapter's tensors: a gigabyte of floats. A few of them can stand for many. */
const MAX_FACTOR = 2 ** 28;

/** A weight, and the bias beside it, as the adapter's kind has them. What does not fit goes to `problems`. */
export function changedByKind(
  model: Model,
  adapter: Adapter,
  name: string,
  tensor: ModelTensor,
  own: OwnModule,
  problems: Problems,
): ModelTensor {
  const { parts } = own;
  const stored = isStoredTransposed(model, adapter, name) ? 'transposed' : 'linear';
  const [rows, columns] = tensor.shape as [number, number];
  const [outputs, inputs] = stored === 'linear' ? [rows, columns] : [columns, rows];
  try {
    const module = moduleOf(adapter, name, own, outputs, inputs);
    if (tensor.shape.length !== 2)
      module.refuse(`changes a weight of [${tensor.shape}]; matrices can be merged`);
    const update = adapter.method!.update(module);
    if (update.form === 'product') {
      const { rank, scale } = update;
      if (rank * Math.max(inputs, outputs) > MAX_FACTOR)
        module.refuse(`makes factors of rank ${rank} for ${outputs} × ${inputs} weights`);
      const a = madeTensor(parts, [rank, inputs], update.right);
      const b = madeTensor(parts, [outputs, rank], update.left);
      return { ...tensor, view: { ...tensor.view, lowRank: { a, b, rank, scale, layout: stored } } };
    }
    const open = stored === 'linear' ? update.open : update.openStored;
    if (!open) return module.refuse('changes weights that are stored as [in, out]');
    changeBias(model, name, outputs, parts, update.bias);
    return {
      ...tensor,
      view: { ...tensor.view, origin: changedRows(tensor.view.origin, columns, parts, open) },
    };
  } catch (thrown) {
    if (!(thrown instanceof AmalgamError)) throw thrown;
    const { code, message, hint } = thrown;
    problems.add({ severity: 'error', code, message, remedy: hint, tensors: [tensor.name] });
    return tensor;
  }
}

/** GPT-2's Conv1D stores [in, out]; for an unknown family the adapter's config decides. */
function isStoredTransposed({ checkpoint: { family } }: Model, { config }: Adapter, name: string): boolean {
  return family ? family.linearStorage === 'in_out' && splitLayer(name) !== null : config.fanInFanOut;
}

function changeBias(model: Model, name: string, outputs: number, parts: Parts, open: Rows['bias']): void {
  const biasName = name.replace(/weight$/, 'bias');
  const bias = model.tensors.get(biasName);
  if (!open || !bias) return;
  const origin = changedRows(bias.view.origin, outputs, parts, open);
  model.tensors.set(biasName, { ...bias, view: { ...bias.view, origin } });
}

function moduleOf(
  { config, path, method }: Adapter,
  name: string,
  own: OwnModule,
  outputs: number,
  inputs: number,
): AdaptedModule {
  const module = name.replace(/\.weight$/, '');
  const fields = { object: config.raw, fileName: config.fileName, code: 'AdapterInvalid' as const };
  return {
    name: module,
    ...own,
    outputs,
    inputs,
    setting: (key) => config.raw.get(key) ?? undefined,
    number: (key, otherwise) => numberField(fields, key) ?? otherwise,
    flag: (key, otherwise) => booleanField(fields, key) ?? otherwise,
    refuse(what) {
      throw new AmalgamError(
        'AdapterUnsupported',
        `The ${method!.title} adapter ${path} ${what}.`,
        'Merge it into its base with PEFT (merge_and_unload) and use the result as a full model.',
      );
    },
  };
}

/**
 * DoRA on a weight whose outputs are columns (embeddings, Conv1D): W′ = (W + ΔW) · diag(m / ‖W + ΔW‖ per column). The
 * norms take a reading of the whole weight ahead of the first row.
 */
export function scaledColumns(
  tensor: ModelTensor,
  { a, b, rank, scale }: LowRank,
  magnitude: TensorRef,
): ModelTensor {
  const width = tensor.shape[1]!;
  const origin = changedRows(tensor.view.origin, width, { a, b, magnitude }, async (values, eachRow) => {
    const rows = a.shape[1]!;
    const add = (row: Float64Array, index: number) => {
      for (let k = 0; k < rank; k++) {
        const left = scale * values.a![k * rows + index]!;
        for (let c = 0; c < width; c++) row[c]! += left * values.b![c * rank + k]!;
      }
    };
    const squares = new Float64Array(width);
    await eachRow((stored, index) => {
      const row = Float64Array.from(stored);
      add(row, index);
      for (let c = 0; c < width; c++) squares[c]! += row[c]! ** 2;
    });
    const factor = squares.map((sum, c) => values.magnitude![c]! / Math.sqrt(sum));
    return (row, index) => {
      add(row, index);
      for (let c = 0; c < width; c++) row[c]! *= factor[c]!;
    };
  });
  return { ...tensor, view: { ...tensor.view, origin } };
}
