/** An opened model: its architecture, its weights within reach, and the device's means to run it. */
import type { BackendBuffer } from '../backend/backend';
import { AmalgamError } from '../errors';
import { isWeightDtype } from '../formats/dtype';
import {
  type Architecture,
  type Block,
  type Linear,
  type Norm,
  partOf,
  type Vector,
} from '../models/architecture';
import { claimTensors, expectedTensors, leavesOf, linearSites, tensorsIn } from '../models/claim';
import { unsupported } from '../models/config-reader';
import type { KeptWeights } from '../reports/evaluate';
import { createWeightReader, type DeviceLinear, type DeviceTile, type WeightReader } from './device-weights';
import { createEmbeddingTable, type EmbeddingTable } from './embedding-table';
import { createLayerStore, type Layer, type LayerStore } from './layer-store';
import type { DeviceNorm, Operations } from './operations';
import { closeOuter, freeNorm, loadNorm, loadOuter, type OuterWeights } from './outer-weights';
import { sharedReads } from './parts/kinds';
import type { BlockWeights } from './parts/part';
import { allEnded } from './queue';
import { cutRows, hasEightBits, layoutOn, rowBytesOf } from './weight-layout';
import { type ChangedWeights, summandsOf, type WeightSource, type WeightSummand } from './weight-source';
import type { Workspace } from './workspace';

/** A tile of the head: rows of logits [first, first + outputs), of each summand of its weights. */
export interface HeadTile extends Layer {
  first: number;
  outputs: number;
  summands: (DeviceTile & Pick<WeightSummand, 'dtype' | 'scale'>)[];
}

/** Layer of a pass after the embedding: a block, or a tile of the head. */
export type ModelLayer = (BlockWeights & { kind: 'block' }) | (HeadTile & { kind: 'head' });

export interface Model {
  readonly architecture: Architecture;
  readonly operations: Operations;
  readonly workspace: Workspace;
  readonly reader: WeightReader;
  readonly table: EmbeddingTable;
  readonly perLayerTable?: EmbeddingTable;
  /** Inputs of layers besides the stream. */
  readonly shared: ReturnType<typeof sharedReads>;
  readonly outer: OuterWeights;
  /** Blocks first, then the tiles of the head. */
  readonly layers: LayerStore<ModelLayer>;
  /** Bytes of all weights as they are kept, embedding table not counted. */
  readonly weightBytes: number;
  /** Bytes of the weights that stay on the device. */
  readonly residentBytes: number;
  /** Weights are kept at eight bits. */
  readonly encoded: boolean;
  /** The weights of a block for a caller that owns them, without some of its linear maps. The caller closes it. */
  block(index: number, without: ReadonlySet<Linear>, signal?: AbortSignal): Promise<BlockWeights>;
  /** Takes what changed in the source: updates at once, layers with other weights when they are next run. */
  renew(changed: ChangedWeights, signal?: AbortSignal): Promise<void>;
  /** Loads the weights outside the layers; later calls return at once. */
  ready(signal?: AbortSignal): Promise<void>;
  close(): void;
}

interface ModelOptions {
  residentBytes: number;
  tileBytes: number;
  weights?: KeptWeights;
}

/**
 * Opens a model over its weights; nothing is read yet.
 *
 * @param residentBytes layers stay on the device, from the first on, as long as they fit into this
 * @param tileBytes most bytes of one weight buffer
 * @param weights how they are kept: `auto` is at eight bits where they would not all stay otherwise
 * @throws AmalgamError `TensorMissing`, `ShapeMismatch`, `ArchitectureUnsupported`, `AdapterUnsupported`
 */
export function openModel(
  architecture: Architecture,
  source: WeightSource,
  operations: Operations,
  workspace: Workspace,
  { residentBytes, tileBytes, weights = 'stored' }: ModelOptions,
): Model {
  const claimed = claimTensors(architecture, source.tensors);
  checkTensors(architecture, source, claimed);
  const { queue } = operations;
  const head: Linear = {
    weight: architecture.final.head,
    inputs: architecture.embedding.width,
    outputs: architecture.vocab,
    storage: 'out_in',
  };
  const summandsIn = ({ weight }: Linear) => summandsOf(source, claimed.get(weight)!);
  const headTiles = cutRows(head, summandsIn(head)[0]!.dtype, tileBytes);
  const { blocks } = architecture;
  const { perLayer } = architecture.embedding;
  const sum = (all: readonly number[]) => all.reduce((a, b) => a + b, 0);
  const sizesAt = (encoded: boolean) => {
    const bytesOf = (linear: Linear) => {
      const { inputs, outputs } = linear;
      const layout = layoutOn(queue.engine, inputs, encoded);
      return outputs * sum(summandsIn(linear).map(({ dtype }) => rowBytesOf(layout, dtype, inputs)));
    };
    return [
      ...blocks.map((block) => blockBytes(block, bytesOf, source, claimed)),
      ...headTiles.map(([, outputs]) => bytesOf({ ...head, outputs })),
    ];
  };
  const plain = sizesAt(false);
  const encoded = weights === '8-bit' || (weights === 'auto' && sum(plain) > residentBytes);
  const sizes = encoded ? sizesAt(true) : plain;
  const total = sum(sizes);
  const reader = createWeightReader(queue, source, claimed, tileBytes, encoded);
  const { staying, stayingBytes } = residents(sizes, residentBytes);
  const layers = createLayerStore<ModelLayer>(
    sizes.length,
    async (index, signal) => {
      const block = blocks[index];
      if (block)
        return {
          kind: 'block',
          ...(await loadBlock(block, reader, operations, undefined, signal)),
        };
      const [first, outputs] = headTiles[index - blocks.length]!;
      const summands: HeadTile['summands'] = [];
      const close = () => {
        for (const { weights: buffer } of summands) queue.free(buffer);
      };
      try {
        for (const summand of summandsIn(head)) {
          const tile = await reader.tile(head, summand, first, outputs, signal);
          summands.push({ ...tile, dtype: summand.dtype, scale: summand.scale });
        }
      } catch (error) {
        close();
        throw error;
      }
      return { kind: 'head', first, outputs, summands, close };
    },
    (index) => index < staying,
    // a device encodes what it is given, and cannot while somebody waits for it
    source.exclusive !== true && !(encoded && queue.engine.kind === 'webgpu'),
  );
  const outer: OuterWeights = {};
  let loading: Promise<void> | undefined;
  const table = createEmbeddingTable(reader, architecture.embedding.token, architecture.embedding.width);
  const perLayerTable =
    perLayer && createEmbeddingTable(reader, perLayer.table, perLayer.layers * perLayer.width);
  const storedIn = (block: Block) => tensorsIn(block).map(({ name }) => claimed.get(name)!);
  const outside = new Set(claimed.values());
  for (const name of blocks.flatMap(storedIn)) outside.delete(name);
  return {
    architecture,
    operations,
    workspace,
    reader,
    table,
    ...(perLayerTable && { perLayerTable }),
    outer,
    shared: sharedReads(architecture),
    layers,
    weightBytes: total,
    residentBytes: stayingBytes,
    encoded: encoded && hasEightBits(queue.engine),
    async renew({ updates, weights }, signal) {
      const headName = reader.stored(head.weight).name;
      for (const [index, loading] of layers.loaded()) {
        const layer = await loading;
        if (layer.kind === 'block') {
          if (!(await layer.take({ updates, weights }, signal))) layers.drop(index);
        } else if (weights.has(headName)) layers.drop(index);
        else for (const [k, { scale }] of summandsIn(head).entries()) layer.summands[k]!.scale = scale;
      }
      if (![...weights, ...updates].some((name) => outside.has(name))) return;
      table.forget();
      perLayerTable?.forget();
      closeOuter(outer, reader, operations);
      for (const key of Object.keys(outer) as (keyof OuterWeights)[]) delete outer[key];
      loading = undefined;
    },
    block: (index, without, signal) => loadBlock(blocks[index]!, reader, operations, without, signal),
    async ready(signal) {
      loading ??= loadOuter(architecture, reader, outer, signal);
      try {
        await loading;
      } catch (error) {
        loading = undefined;
        throw error;
      }
    },
    close() {
      layers.close();
      closeOuter(outer, reader, operations);
    },
  };
}

/** The first layers that fit, two being left room for the others unless all fit. */
function residents(sizes: readonly number[], budget: number): { staying: number; stayingBytes: number } {
  const total = sizes.reduce((a, b) => a + b, 0);
  if (total <= budget) return { staying: sizes.length, stayingBytes: total };
  let left = budget - 2 * Math.max(...sizes);
  let staying = 0;
  while (left >= sizes[staying]!) left -= sizes[staying++]!;
  return { staying, stayingBytes: sizes.slice(0, staying).reduce((a, b) => a + b, 0) };
}

function checkTensors(
  architecture: Architecture,
  source: WeightSource,
  claimed: ReadonlyMap<string, string>,
): void {
  for (const { name } of expectedTensors(architecture)) {
    const stored = claimed.get(name)!;
    const { dtype } = source.tensors.get(stored)!;
    if (!isWeightDtype(dtype)) throw unsupported(`${stored} is ${dtype}; only F32, F16 and BF16 can be run.`);
  }
  const { linears, norms } = leavesOf([architecture.blocks, architecture.planes]);
  const widths = [...linears, ...norms.map(({ width }) => ({ inputs: width }))].map(({ inputs }) => inputs);
  const heads = architecture.blocks.flatMap((block) => partOf(block, 'attention') ?? []);
  const odd = [
    ...widths,
    ...heads.flatMap(({ headDim, valueDim }) => [headDim, valueDim]),
    architecture.embedding.width,
    architecture.hidden,
  ].find((width) => width % 4 !== 0);
  if (odd !== undefined) throw unsupported(`A width of ${odd} is no multiple of 4.`);
  const adaptable = adaptableWeights(architecture, claimed);
  for (const name of source.updates?.keys() ?? []) {
    if (adaptable.has(name)) continue;
    throw new AmalgamError(
      'AdapterUnsupported',
      `The adapter changes ${name}, which is no linear layer of a block.`,
      'Run the model with this adapter merged in.',
    );
  }
}

/** Stored names of the linear maps that can have a low-rank update. @param claimed the architecture's name → the stored name */
export function adaptableWeights(
  { blocks, planes }: Architecture,
  claimed: ReadonlyMap<string, string>,
): ReadonlySet<string> {
  const { linears } = leavesOf([blocks, planes]);
  return new Set(linears.flatMap(({ weight, stack }) => (stack ? [] : [claimed.get(weight)!])));
}

function blockBytes(
  block: Block,
  bytesOf: (linear: Linear) => number,
  { updates }: WeightSource,
  claimed: ReadonlyMap<string, string>,
): number {
  return leavesOf(block).linears.reduce((sum, linear) => {
    const rank = updates?.get(claimed.get(linear.weight)!)?.rank ?? 0;
    return sum + bytesOf(linear) + rank * (linear.inputs + linear.outputs) * 4;
  }, 0);
}

/**
 * Every linear map, norm and vector of a block, by the object that names it. With a set of linear maps to leave out, a caller
 * may renew them one by one: none shares a buffer then.
 */
async function loadBlock(
  block: Block,
  reader: WeightReader,
  { queue }: Operations,
  without: ReadonlySet<Linear> | undefined,
  signal?: AbortSignal,
): Promise<BlockWeights> {
  const leaves = leavesOf(block);
  // the processor lays each in panels of its own, on all cores
  const together = without || queue.engine.kind === 'cpu' ? [] : linearSites(block).map((s) => s.linears);
  const groupOf = new Map(together.flatMap((group) => group.map((linear) => [linear, group])));
  const groups = leaves.linears.flatMap((linear) => {
    const group = groupOf.get(linear) ?? [linear];
    return without?.has(linear) || group[0] !== linear ? [] : [group];
  });
  const linears = new Map<Linear, DeviceLinear>();
  const norms = new Map<Norm, DeviceNorm>();
  const vectors = new Map<Vector, { buffer: BackendBuffer; values: Float32Array<ArrayBuffer> }>();
  const loadVector = async (vector: Vector, stop?: AbortSignal) => {
    const values = await reader.values(vector, stop);
    return { values, buffer: reader.upload(values, 'vector') };
  };
  const close = () => {
    for (const linear of linears.values()) reader.free(linear);
    for (const norm of norms.values()) freeNorm(norm, queue);
    for (const { buffer } of vectors.values()) queue.free(buffer);
  };
  try {
    for (const norm of leaves.norms) norms.set(norm, await loadNorm(norm, reader, signal));
    const wanted = [...groups];
    const load = async () => {
      for (let group = wanted.shift(); group; group = wanted.shift()) {
        const loaded = await reader.linears(group, signal);
        for (const [i, linear] of group.entries()) linears.set(linear, loaded[i]!);
      }
    };
    await allEnded(Array.from({ length: reader.source.atOnce ?? 1 }, load));
    for (const vector of leaves.vectors) vectors.set(vector, await loadVector(vector, signal));
  } catch (error) {
    close();
    throw error;
  }
  return {
    block,
    close,
    async renew(linear, again) {
      const fresh = await reader.linear(linear, again);
      const old = linears.get(linear);
      if (old) reader.free(old);
      linears.set(linear, fresh);
    },
    async take({ updates, weights }, again) {
      const isOther = (name: number | string | undefined) =>
        typeof name === 'string' && weights.has(reader.stored(name).name);
      const partsOf = ({ tensors }: Vector) =>
        tensors.map((part) => ('name' in part ? part.name : undefined));
      const small = [
        ...leaves.linears.map(({ bias }) => bias),
        ...leaves.norms.flatMap(({ weight, bias }) => [weight, bias]),
        ...leaves.vectors.flatMap(partsOf),
      ];
      const taken = new Set(small.filter(isOther).map((name) => reader.stored(name as string).name));
      if (tensorsIn(block).some(({ name }) => isOther(name) && !taken.has(reader.stored(name).name)))
        return false;
      for (const group of groups) {
        const devices = group.map((linear) => linears.get(linear)!);
        if (devices.some(({ name }) => updates.has(name))) await reader.renewUpdates(devices, group, again);
        if (group.some(({ bias }) => isOther(bias))) await reader.renewBiases(devices, group, again);
      }
      for (const [norm, old] of norms) {
        if (![norm.weight, norm.bias].some(isOther)) continue;
        norms.set(norm, await loadNorm(norm, reader, again));
        freeNorm(old, queue);
      }
      for (const [vector, old] of vectors) {
        if (!partsOf(vector).some(isOther)) continue;
        vectors.set(vector, await loadVector(vector, again));
        queue.free(old.buffer);
      }
      return true;
    },
    linear: (linear) => linears.get(linear)!,
    norm: (norm) => norms.get(norm)!,
    vector: (vector) => vectors.get(vector)!.buffer,
    values: (vector) => vectors.get(vector)!.values,
  };
}
