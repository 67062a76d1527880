/** Types shared by the kinds of parts: their weights on the device, their context in a chunk, and their state of a sequence. */

import type { BackendBuffer } from '../../backend/backend';
import type { Block, Linear, Norm, Part, Vector } from '../../models/architecture';
import type { LinearSite } from '../../models/claim';
import type { Chunk } from '../chunk';
import type { DeviceLinear } from '../device-weights';
import type { DeviceNorm, Operations, RowBuffer } from '../operations';
import type { DeviceRows } from '../queue';
import type { ChangedWeights } from '../weight-source';
import type { Workspace } from '../workspace';

/** Weights of a block by the object of the architecture that names them. */
export interface Loaded {
  linear(linear: Linear): DeviceLinear;
  norm(norm: Norm): DeviceNorm;
  vector(vector: Vector): BackendBuffer;
  /** The same values on the host. */
  values(vector: Vector): Float32Array;
}

/** Shape of a part's state of earlier tokens: a row for each position, or one for each sequence. */
export interface StateShape {
  name: string;
  per: 'position' | 'sequence';
  /** f32 elements of a row. */
  width: number;
  /** The layer that stores it, where it is another's. */
  of?: number;
}

/** Context of running one branch on a chunk. */
export interface Passage {
  operations: Operations;
  workspace: Workspace;
  chunk: Chunk;
  weights: Loaded;
  /** Name of the branch. */
  name: string;
  /** Width of the stream. */
  hidden: number;
  /** Per row of the chunk: row among the keys, position. */
  places: BackendBuffer;
  /** The chunk's groups of rows, for attention. */
  groups: BackendBuffer;
  /** The chunk's pieces, for what runs along a sequence: `pieceWords`. */
  pieces: BackendBuffer;
  state(shape: StateShape): BackendBuffer;
  /** The stream as the branch found it. */
  entered: RowBuffer;
  /** Rows onto which the branch's last layer may add its outputs, in place of a buffer of its own. */
  onto?: RowBuffer;
  /** The layers' shares of the tokens' embeddings, where the model has them. */
  perLayer?: RowBuffer;
  /** Rows that entered the first block, where a part reads them again. */
  embedded?: RowBuffer;
  /** Called with the rows that enter linear layers, when they are on the device. */
  tap?(side: 'in' | 'out', linears: readonly Linear[], rows: RowBuffer): void | Promise<void>;
  experts?: ExpertTaps;
}

/** Looks at the experts of a layer. */
export interface ExpertTaps {
  /** What the router says of all rows: [rows, stride], of which the first columns are the experts'. */
  scores(scores: Float32Array, rows: number, stride: number): void;
  /** What an expert makes of the rows that take it, and the factor of each. The rows are gone when the promise is settled. */
  outputs(expert: number, factors: Float32Array, rows: DeviceRows): Promise<void>;
}

/** A kind of part: its states, the width of its rows, and how it runs. */
export interface PartKind<P extends Part> {
  states(part: P): StateShape[];
  /** f32 elements of the rows it needs room for besides its input. */
  width(part: P): number;
  /** Whether all that reads its input are linear layers, which can take a norm along. */
  readsByLayers?(part: P): boolean;
  /** Rows x through the part: [rows, hidden] in a buffer named after the branch, or `onto`, with the outputs added. */
  run(part: P, passage: Passage, x: RowBuffer): Promise<RowBuffer>;
}

/** A buffer of the workspace for the chunk's rows; a stride is a multiple of 4. */
export function room({ workspace, chunk }: Passage, name: string, width: number): RowBuffer {
  const stride = Math.ceil(width / 4) * 4;
  return { buffer: workspace.take(name, chunk.rows * stride * 4), stride };
}

/** Room for what the updates of layers side by side make of rows. */
export function narrowRows(
  workspace: Workspace,
  layers: readonly DeviceLinear[],
  rows: number,
): BackendBuffer {
  const rank = Math.max(0, ...layers.map((layer) => layer.lowRank?.rank ?? 0));
  return workspace.take('low rank', layers.length * rows * rank * 4);
}

/** The last layer of a branch. */
export function projectOut(passage: Passage, output: Linear, x: RowBuffer): Promise<RowBuffer> {
  const { name, onto } = passage;
  return project(passage, [output], x, `${name} branch`, passage.chunk.rows, onto);
}

/** The outputs of layers that share an input, side by side in a buffer of this name, or added onto rows. */
export async function project(
  passage: Passage,
  linears: readonly Linear[],
  x: RowBuffer,
  name: string,
  rows = passage.chunk.rows,
  onto?: RowBuffer,
): Promise<RowBuffer> {
  const { operations: op, workspace, weights } = passage;
  const width = linears.reduce((sum, linear) => sum + linear.outputs, 0);
  const stride = Math.ceil(width / 4) * 4;
  const y = onto ?? { buffer: workspace.take(name, rows * stride * 4), stride };
  const layers = linears.map((linear) => weights.linear(linear));
  await op.linear(layers, x, y, rows, narrowRows(workspace, layers, rows), onto !== undefined);
  return y;
}

// Context in which a block runs: its weights, and the chunk's rows and caches.

/** A block's weights on the device. */
export interface BlockWeights extends Loaded {
  block: Block;
  /** Reads a linear map anew, or one that was left out. */
  renew(linear: Linear, signal?: AbortSignal): Promise<void>;
  /** Takes what changed of its updates and summands, and of its weights where it can without being loaded anew; whether it can. */
  take(changed: ChangedWeights, signal?: AbortSignal): Promise<boolean>;
  close(): void;
}

/** Context of a chunk in a block, besides the weights. */
export interface BlockPassage extends Omit<Passage, 'weights' | 'name' | 'tap' | 'entered' | 'onto'> {
  /** Name of the chunk's stream in the workspace. */
  stream: string;
  /** All streams of the chunk, [rows, planes · hidden], where the model has several. */
  planes?: RowBuffer;
  onSite?(site: LinearSite, linears: readonly Linear[], rows: RowBuffer): void | Promise<void>;
}
