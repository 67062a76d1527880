/** The updates of an image model's LoRA, tensor by tensor of a checkpoint that may name and cut its matrices otherwise. */
import { imageTargets, partOf, type UnitRows, unitRows } from '../formats/image-checkpoint';
import { counted } from '../formats/quantity';
import type { AdapterUpdate } from './adapter';
import { type Applying, madeTensor } from './kind-updates';
import { nameSome } from './problems';
import type { TensorRef } from './tensor-view';

/** Rows of an update, and where they belong in a tensor. */
interface Piece extends UnitRows {
  update: AdapterUpdate;
  to: number;
}

/**
 * The updates by the key of the tensor they change. Modules that the checkpoint has nowhere are in `missing`; where it lacks a whole
 * text encoder, that is said and the rest is merged.
 */
export function imageUpdates({ model, adapter, problems }: Applying): {
  updates: Map<string, AdapterUpdate>;
  missing: string[];
} {
  const keys = new Map([...model.tensors].map(([key, { name }]) => [name, key]));
  const targets = imageTargets(new Map([...model.tensors.values()].map((tensor) => [tensor.name, tensor])));
  const pieces = new Map<string, Piece[]>();
  const missing: string[] = [];
  const absent: string[] = [];
  for (const [module, update] of adapter.updates) {
    const path = targets.byFlatName.get(module) ?? module;
    const units = unitRows(path, [update.b.shape[0]!, ...update.a.shape.slice(1)]);
    for (const unit of units) {
      const target = targets.byUnit.get(unit.unit);
      if (!target) {
        const part = partOf(unit.unit);
        (isTextEncoder(part) && !targets.parts.has(part) ? absent : missing).push(module);
        break;
      }
      if (unit.rows !== target.rows) {
        problems.error(
          'AdapterShape',
          `The tensors of ${adapter.path} do not fit the weights they are for.`,
          'Put the adapter on the base it was trained on.',
          [`${module}: ${counted(unit.rows, 'output')} for ${target.rows} of ${target.tensor}`],
        );
        continue;
      }
      const found = pieces.get(target.tensor) ?? [];
      pieces.set(target.tensor, [...found, { ...unit, update, to: target.begin }]);
    }
  }
  if (absent.length > 0) {
    problems.warn(
      'AdapterPartAbsent',
      `${adapter.path} also changes a text encoder, which ${model.checkpoint.path} does not hold: ${counted(absent.length, 'module')} of it ${absent.length === 1 ? 'is' : 'are'} not merged (${nameSome(absent)}).`,
      'Give the LoRA beside the merged model for its text encoder alone, or merge into a checkpoint that holds one.',
    );
  }
  const updates = new Map<string, AdapterUpdate>();
  for (const [tensor, parts] of pieces) {
    const key = keys.get(tensor)!;
    const { shape } = model.tensors.get(key)!;
    const { update } = parts[0]!;
    const isWhole = update.b.shape[0] === shape[0];
    if (isWhole && parts.every((part) => part.update === update && part.begin === part.to)) {
      updates.set(key, update);
      continue;
    }
    const isPart = parts.some(({ update }) => update.magnitude);
    if (isPart && !coversRows(parts, shape[0]!)) {
      problems.error(
        'AdapterUnsupported',
        `${adapter.path} scales a part of the rows of a matrix (DoRA), whose other rows would need a scale too.`,
        'Use a checkpoint whose matrices are cut as the LoRA’s are.',
        [tensor],
      );
      continue;
    }
    updates.set(key, assembled(parts, shape[0]!));
  }
  return { updates, missing };
}

const isTextEncoder = (part: string) => part === 't5' || part.startsWith('text_encoder');

function coversRows(pieces: readonly Piece[], outputs: number): boolean {
  const all = pieces.every(({ update }) => update.magnitude);
  return all && pieces.reduce((sum, { rows }) => sum + rows, 0) === outputs;
}

/** One update of a whole tensor: the A of all below one another, and each B in the rows and columns that are its. */
function assembled(pieces: readonly Piece[], outputs: number): AdapterUpdate {
  const distinct = [...new Set(pieces.map(({ update }) => update))];
  const rank = distinct.reduce((sum, update) => sum + update.rank, 0);
  const beginOf = new Map(
    distinct.map((update, i) => [update, distinct.slice(0, i).reduce((sum, u) => sum + u.rank, 0)]),
  );
  const named = (refs: readonly TensorRef[]) => Object.fromEntries(refs.map((ref, i) => [String(i), ref]));
  const [first] = distinct;
  const across = first!.a.shape.slice(1);
  const width = across.reduce((n, extent) => n * extent, 1);
  const a =
    distinct.length === 1
      ? first!.a
      : madeTensor(named(distinct.map((update) => update.a)), [rank, ...across], (values) => {
          const out = new Float32Array(rank * width);
          for (const [i, update] of distinct.entries()) {
            out.set(values[i]!.subarray(0, update.rank * width), beginOf.get(update)! * width);
          }
          return out;
        });
  const b = madeTensor(named(distinct.map((update) => update.b)), [outputs, rank], (values) => {
    const out = new Float32Array(outputs * rank);
    for (const { update, begin, rows, to } of pieces) {
      const from = values[distinct.indexOf(update)]!;
      for (let row = 0; row < rows; row++) {
        const at = (begin + row) * update.rank;
        out.set(from.subarray(at, at + update.rank), (to + row) * rank + beginOf.get(update)!);
      }
    }
    return out;
  });
  const magnitudes = distinct.flatMap(({ magnitude }) => magnitude ?? []);
  const magnitude =
    magnitudes.length === 0
      ? undefined
      : madeTensor(named(magnitudes), [outputs], (values) => {
          const out = new Float32Array(outputs);
          for (const { update, begin, rows, to } of pieces) {
            out.set(values[distinct.indexOf(update)]!.subarray(begin, begin + rows), to);
          }
          return out;
        });
  return { a, b, kind: 'linear', rank, scale: 1, ...(magnitude && { magnitude }) };
}
