/** Weights of a model outside its blocks and its head. */
import type { BackendBuffer } from '../backend/backend';
import type { Architecture, Linear, Norm } from '../models/architecture';
import type { DeviceLinear, WeightReader } from './device-weights';
import type { DeviceNorm, Operations } from './operations';

/** Weights outside the blocks and the head: small, loaded once. */
export interface OuterWeights {
  projectIn?: DeviceLinear;
  positions?: BackendBuffer;
  embeddingNorm?: DeviceNorm;
  finalNorm?: DeviceNorm;
  transform?: { linear: DeviceLinear; norm: DeviceNorm };
  projectOut?: DeviceLinear;
  perLayer?: { projection: DeviceLinear; norm: DeviceNorm };
  planes?: { begin: DeviceLinear[]; end: DeviceLinear[] };
  /** Of the logits, on the host. */
  headBias?: Float32Array<ArrayBuffer>;
}

export async function loadNorm(norm: Norm, reader: WeightReader, signal?: AbortSignal): Promise<DeviceNorm> {
  const weight =
    typeof norm.weight === 'string'
      ? await reader.vector(norm.weight, signal)
      : reader.upload(new Float32Array(norm.width).fill(norm.weight), 'norm');
  return { norm, weight, ...(norm.bias !== undefined && { bias: await reader.vector(norm.bias, signal) }) };
}

export function freeNorm(norm: DeviceNorm | undefined, queue: Operations['queue']): void {
  queue.free(norm?.weight);
  queue.free(norm?.bias);
}

export async function loadOuter(
  { embedding, final, planes }: Architecture,
  reader: WeightReader,
  outer: OuterWeights,
  signal?: AbortSignal,
): Promise<void> {
  if (embedding.projection) outer.projectIn ??= await reader.linear(embedding.projection, signal);
  if (embedding.positions) outer.positions ??= await loadPositions(embedding.positions, reader, signal);
  if (embedding.perLayer && !outer.perLayer) {
    outer.perLayer = {
      projection: await reader.linear(embedding.perLayer.projection, signal),
      norm: await loadNorm(embedding.perLayer.norm, reader, signal),
    };
  }
  if (planes && !outer.planes) {
    const load = async (layers: readonly Linear[]) => {
      const loaded: DeviceLinear[] = [];
      for (const layer of layers) loaded.push(await reader.linear(layer, signal));
      return loaded;
    };
    outer.planes = { begin: await load(planes.begin), end: await load(planes.end) };
  }
  if (embedding.norm) outer.embeddingNorm ??= await loadNorm(embedding.norm, reader, signal);
  if (final.norm) outer.finalNorm ??= await loadNorm(final.norm, reader, signal);
  if (final.transform && !outer.transform) {
    outer.transform = {
      linear: await reader.linear(final.transform.linear, signal),
      norm: await loadNorm(final.transform.norm, reader, signal),
    };
  }
  if (final.bias) outer.headBias ??= await reader.values(final.bias, signal);
  if (final.projection) outer.projectOut ??= await reader.linear(final.projection, signal);
}

/** The rows of all positions, for each kind of text with its addend. */
async function loadPositions(
  { tensor, rows, types }: NonNullable<Architecture['embedding']['positions']>,
  reader: WeightReader,
  signal?: AbortSignal,
): Promise<BackendBuffer> {
  if (!types) return reader.vector(tensor, signal);
  const read = (name: string) => reader.values({ tensors: [{ name, shape: [] }] }, signal);
  const [positions, added] = [await read(tensor), await read(types.tensor)];
  const width = positions.length / rows;
  const table = new Float32Array(types.rows * positions.length);
  for (let i = 0; i < table.length; i++) {
    const [type, at] = [Math.floor(i / positions.length), i % positions.length];
    table[i] = positions[at]! + added[type * width + (at % width)]!;
  }
  return reader.upload(table, tensor);
}

export function closeOuter(outer: OuterWeights, reader: WeightReader, { queue }: Operations): void {
  const single = [outer.projectIn, outer.projectOut, outer.perLayer?.projection, outer.transform?.linear];
  for (const linear of [...single, ...(outer.planes?.begin ?? []), ...(outer.planes?.end ?? [])])
    if (linear) reader.free(linear);
  const norms = [outer.embeddingNorm, outer.finalNorm, outer.perLayer?.norm, outer.transform?.norm];
  for (const norm of norms) freeNorm(norm, queue);
  queue.free(outer.positions);
}
