/** The updates of an image model's LoRA, tensor by tensor of a checkpoint that may name and cut its matrices otherwise. */
import { imageTargets, partOf, type UnitRows, unitRows } from '../formats/image-checkpoint';
import { counted } from '../formats/quantity';
import type { AdapterUpdate, RowsUpdate } from './adapter';
import { type Applying, changedRows, madeTensor } from './kind-updates';
import type { ModelTensor } from './model';
import { nameSome } from './problems';
import type { TensorRef } from './tensor-view';

/** Rows of a change, and where they belong in a tensor. */
interface Piece<Change> extends UnitRows {
  change: Change;
  to: number;
}

/** What an adapter does to the tensors of a checkpoint, by their keys. */
export interface ImageUpdates {
  updates: Map<string, AdapterUpdate>;
  /** What changes rows, in place of factors. */
  rows: Map<string, (tensor: ModelTensor) => ModelTensor>;
  /** Modules that the checkpoint has nowhere. */
  missing: string[];
}

/** Where the checkpoint lacks a whole text encoder, that is said and the rest is merged. */
export function imageUpdates({ model, adapter, problems }: Applying): ImageUpdates {
  const keys = new Map([...model.tensors].map(([key, { name }]) => [name, key]));
  const shapes = new Map([...model.tensors.values()].map((tensor) => [tensor.name, tensor]));
  const targets = imageTargets(shapes);
  const missing: string[] = [];
  const absent: string[] = [];
  const misfit = (module: string, what: string) =>
    problems.error(
      'AdapterShape',
      `The tensors of ${adapter.path} do not fit the weights they are for.`,
      'Put the adapter on the base it was trained on.',
      [`${module}: ${what}`],
    );
  /** Changes by the tensor that their rows are in. */
  const placed = <Change>(changes: Iterable<readonly [string, Change, number, number | undefined]>) => {
    const pieces = new Map<string, Piece<Change>[]>();
    for (const [module, change, outputs, width] of changes) {
      const path = targets.byFlatName.get(module) ?? module;
      const [first] = unitRows(path, [outputs]);
      const inputs = width ?? shapes.get(targets.byUnit.get(first!.unit)?.tensor ?? '')?.shape[1] ?? 1;
      for (const unit of unitRows(path, [outputs, inputs])) {
        const target = targets.byUnit.get(unit.unit);
        if (!target) {
          const part = partOf(unit.unit);
          (isTextEncoder(part) && !targets.parts.has(part) ? absent : missing).push(module);
          break;
        }
        if (unit.rows !== target.rows) {
          misfit(module, `${counted(unit.rows, 'output')} for ${target.rows} of ${target.tensor}`);
          continue;
        }
        const found = pieces.get(target.tensor) ?? [];
        pieces.set(target.tensor, [...found, { ...unit, change, to: target.begin }]);
      }
    }
    return pieces;
  };
  const pieces = placed(
    [...adapter.updates].map(([module, own]) => [module, own, own.b.shape[0]!, own.a.shape[1]] as const),
  );
  const rowPieces = placed(
    [...(adapter.rows ?? [])].map(([module, own]) => [module, own, own.outputs, own.width] as const),
  );
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
    const outputs = shapes.get(tensor)!.shape[0]!;
    const update = wholeOf(parts, outputs, ({ b }) => b.shape[0]!);
    if (update) updates.set(key, update);
    else if (parts.some(({ change }) => change.magnitude) && !coversRows(parts, outputs)) {
      problems.error(
        'AdapterUnsupported',
        `${adapter.path} scales a part of the rows of a matrix (DoRA), whose other rows would need a scale too.`,
        'Use a checkpoint whose matrices are cut as the LoRA’s are.',
        [tensor],
      );
    } else updates.set(key, assembled(parts, outputs));
  }
  const rows: ImageUpdates['rows'] = new Map();
  for (const [tensor, parts] of rowPieces) {
    const { shape } = shapes.get(tensor)!;
    const width = shape.slice(1).reduce((n, extent) => n * extent, 1);
    for (const { change, begin, to, rows: count } of parts) {
      const isCut = [begin, to, count].some((n) => n % change.group !== 0);
      if (change.width !== undefined && change.width !== width)
        misfit(tensor, `rows of ${change.width} for rows of ${width}`);
      if (!isCut && !(change.isWhole && count < shape[0]!)) continue;
      problems.error(
        'AdapterUnsupported',
        `${adapter.path} changes rows together (${change.title}) that ${model.checkpoint.path} does not hold together.`,
        'Use a checkpoint whose matrices are cut as the adapter’s are.',
        [tensor],
      );
    }
    rows.set(keys.get(tensor)!, (from) => parts.reduce((made, part) => withRowsOf(made, part, width), from));
  }
  return { updates, rows, missing };
}

/** The change that is all of a tensor, where one is. */
function wholeOf<Change>(
  parts: readonly Piece<Change>[],
  outputs: number,
  outputsOf: (change: Change) => number,
): Change | undefined {
  const { change } = parts[0]!;
  const isWhole = parts.every((part) => part.change === change && part.begin === part.to);
  return isWhole && outputsOf(change) === outputs ? change : undefined;
}

/** A tensor with rows of it changed. @param width elements of a row */
function withRowsOf(tensor: ModelTensor, piece: Piece<RowsUpdate>, width: number): ModelTensor {
  const { change, begin, to, rows } = piece;
  const { group, parts } = change;
  const origin = changedRows({ origin: tensor.view.origin, width: width * group }, parts, async (opened) => {
    const open = await change.open(opened);
    return (row, index, partner) => {
      const at = index - to / group;
      if (at >= 0 && at < rows / group) open(row, at + begin / group, partner);
    };
  });
  return { ...tensor, view: { ...tensor.view, origin } };
}

const isTextEncoder = (part: string) => part === 't5' || part.startsWith('text_encoder');

function coversRows(pieces: readonly Piece<AdapterUpdate>[], outputs: number): boolean {
  const all = pieces.every(({ change }) => change.magnitude);
  return all && pieces.reduce((sum, { rows }) => sum + rows, 0) === outputs;
}

/** One update of a whole tensor: the A of all below one another, and each B in the rows and columns that are its. */
function assembled(pieces: readonly Piece<AdapterUpdate>[], outputs: number): AdapterUpdate {
  const distinct = [...new Set(pieces.map(({ change }) => change))];
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
    for (const { change: update, begin, rows, to } of pieces) {
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
          for (const { change: update, begin, rows, to } of pieces) {
            out.set(values[distinct.indexOf(update)]!.subarray(begin, begin + rows), to);
          }
          return out;
        });
  return { a, b, kind: 'linear', rank, scale: 1, ...(magnitude && { magnitude }) };
}
