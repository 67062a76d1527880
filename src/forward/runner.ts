/** A model that runs: the door to the forward pass. */
import type { Backend } from '../backend/backend';
import { type Architecture, partOf } from '../models/architecture';
import { leavesOf } from '../models/claim';
import type { KeptWeights } from '../reports/evaluate';
import { LOGIT_BYTES } from './head';
import { createKvCache, type KvCache } from './kv-cache';
import { openModel } from './model';
import { createOperations } from './operations';
import { kindOf, partsOf } from './parts/kinds';
import {
  longSequences,
  mostKeyRows,
  type Pass,
  type PassRequest,
  type PassResult,
  startPass,
  wholePass,
} from './pass';
import { createQueue } from './queue';
import { openWalk, type Walk, type WalkText } from './walk';
import { type EffectsOfWeights, measureWeightEffects } from './weight-effects';
import type { ChangedWeights, WeightSource } from './weight-source';
import { createWorkspace } from './workspace';

export interface RunnerOptions {
  /**
   * Layers stay on the device, from the first on, as long as they fit into this many bytes, or what the engine says it has room
   * for. Default 0: two at a time.
   */
  residentBytes?: number;
  /** How weights are kept; `auto`: at eight bits where they would not all stay otherwise. Default: as they are stored. */
  weights?: KeptWeights;
  /** Bytes of activations of one chunk of rows. Default 256 MiB. */
  activationBytes?: number;
  /** Bytes of residual streams of one pass. Default 256 MiB. */
  streamBytes?: number;
  /** Most bytes of one weight buffer. Default 128 MiB, what WebGPU promises everywhere. */
  tileBytes?: number;
}

const MEBIBYTE = 2 ** 20;
const DEFAULTS = {
  residentBytes: 0,
  activationBytes: 256 * MEBIBYTE,
  streamBytes: 256 * MEBIBYTE,
  tileBytes: 128 * MEBIBYTE,
};
const CHUNK_ROWS = { least: 32, most: 2048 };

export interface Runner {
  readonly architecture: Architecture;
  readonly engine: Backend;
  /** Rows a pass should not exceed, so that its streams stay within their room. */
  readonly rowsPerPass: number;
  /** Sequences longer than this rotate otherwise (longrope), and share nothing with shorter ones. */
  readonly longAfter: number;
  /** Sequences behind which the device draws a token at once: none on the processor, where the logits are at hand. */
  readonly mostDraws: number;
  /** Rows of keys that fit a buffer, of all sequences that continue others together. */
  readonly mostKeyRows: number;
  /** Bytes of all weights of blocks and head as they are kept, and of those that stay on the device. */
  readonly weightBytes: number;
  readonly residentBytes: number;
  /** Weights are kept at eight bits, those of matrices whose inputs are no multiple of 32 excepted. */
  readonly encoded: boolean;
  /** Most bytes held on the device so far. */
  readonly peakBytes: number;
  /** Begins a pass. Its steps must not overlap with those of another pass on the same engine. */
  startPass(request: Omit<PassRequest, 'chunkRows'>): Pass;
  /** A whole pass: all steps, then the result. */
  pass(
    request: Omit<PassRequest, 'chunkRows'>,
    onStep?: (stepsDone: number, steps: number) => void,
  ): Promise<PassResult>;
  /** Texts that go through the model from site to site. @throws as `startPass` */
  openWalk(texts: readonly WalkText[], signal?: AbortSignal): Walk;
  /** What each linear map of the blocks does to a text. */
  weightEffects(request: EffectsOfWeights): Promise<number>;
  /** Takes what changed in its source, between two passes. */
  renew(changed: ChangedWeights, signal?: AbortSignal): Promise<void>;
  /** @throws AmalgamError `ContextTooLong` */
  openCache(slots: number, capacity: number): KvCache;
  close(): void;
}

/**
 * Opens a model on an engine. Nothing is read until the first pass.
 *
 * @param architecture from `resolveArchitecture`
 * @throws AmalgamError `TensorMissing`, `ShapeMismatch`, `ArchitectureUnsupported` (a stored tensor that the architecture
 *   has no place for, a dtype or width that no kernel handles), `AdapterUnsupported`
 */
export function openRunner(
  engine: Backend,
  architecture: Architecture,
  source: WeightSource,
  options: RunnerOptions = {},
): Runner {
  const settings = { ...DEFAULTS, ...options };
  const queue = createQueue(engine);
  const operations = createOperations(queue);
  const workspace = createWorkspace(queue);
  // the fewest rows that go through a tile at once, times its weights of two bytes or four
  const tileBytes = Math.min(
    settings.tileBytes,
    engine.maxBufferBytes,
    Math.floor((2 * queue.dispatchWork) / CHUNK_ROWS.least),
  );
  const residentBytes =
    settings.residentBytes > 0 ? Math.max(settings.residentBytes, engine.residentBytes ?? 0) : 0;
  const model = openModel(architecture, source, operations, workspace, {
    ...{ residentBytes, tileBytes },
    ...(options.weights && { weights: options.weights }),
  });
  const chunkRows = rowsOfChunk(architecture, queue.dispatchWork, settings.activationBytes);
  const startRunnerPass: Runner['startPass'] = (request) => startPass(model, { ...request, chunkRows });
  return {
    architecture,
    engine,
    rowsPerPass: Math.max(chunkRows, Math.floor(settings.streamBytes / (streamWidth(architecture) * 4))),
    mostDraws: engine.kind === 'cpu' ? 0 : Math.floor(LOGIT_BYTES / (4 * architecture.vocab)),
    mostKeyRows: mostKeyRows(model),
    longAfter: longSequences(architecture) ?? Number.POSITIVE_INFINITY,
    weightBytes: model.weightBytes,
    residentBytes: model.residentBytes,
    encoded: model.encoded,
    get peakBytes() {
      return queue.peakBytes;
    },
    startPass: startRunnerPass,
    pass: (request, onStep) => wholePass(startRunnerPass(request), onStep),
    openWalk: (texts, signal) => openWalk(model, texts, chunkRows, signal),
    weightEffects: (request) => measureWeightEffects(model, startRunnerPass, request, tileBytes),
    renew: (changed, signal) => model.renew(changed, signal),
    openCache: (slots, capacity) => createKvCache(queue, architecture, slots, capacity),
    close() {
      model.close();
      workspace.close();
      queue.free(operations.nothing);
    },
  };
}

/** Rows that go through a block at once: bounded by memory, and by how long one dispatch may take. */
function rowsOfChunk(architecture: Architecture, dispatchWork: number, activationBytes: number): number {
  const { blocks, hidden, planes } = architecture;
  const widths = blocks.flatMap(partsOf).map((part) => kindOf(part).width(part));
  const rowBytes = 4 * (hidden * (2 * (planes?.count ?? 1) - 1) + Math.max(...widths));
  const largest = Math.max(...leavesOf(blocks).linears.map((l) => l.inputs * l.outputs));
  const rows = Math.floor(Math.min(activationBytes / rowBytes, dispatchWork / largest));
  return Math.min(CHUNK_ROWS.most, Math.max(CHUNK_ROWS.least, rows));
}

/** f32 elements that are kept of a row from block to block. */
function streamWidth({ hidden, planes, blocks }: Architecture): number {
  const attentions = blocks.map((block) => partOf(block, 'attention'));
  const donors = new Set(attentions.map((part) => part?.keysOf));
  const keys = attentions.map((part, index) =>
    part && donors.has(index) ? part.keyValueHeads * (part.headDim + part.valueDim) : 0,
  );
  return hidden * (planes?.count ?? 1) + keys.reduce((a, b) => a + b, 0);
}
