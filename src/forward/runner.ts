/** A model that runs: the door to the forward pass. */
import type { Backend } from '../backend/backend';
import type { Architecture } from '../models/architecture';
import { leavesOf } from '../models/claim';
import { createKvCache, type KvCache } from './kv-cache';
import { openModel } from './model';
import { createOperations } from './operations';
import { kindOf } from './parts/kinds';
import { createQueue } from './queue';
import { type Sweep, type SweepRequest, type SweepResult, startSweep } from './sweep';
import type { WeightSource } from './weight-source';
import { createWorkspace } from './workspace';

export interface RunnerOptions {
  /** Layers stay on the device, from the first on, as long as they fit into this many bytes. Default 0: two at a time. */
  residentBytes?: number;
  /** Bytes of activations of one chunk of rows. Default 256 MiB. */
  activationBytes?: number;
  /** Bytes of residual streams of one sweep. Default 256 MiB. */
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
  /** Rows a sweep should not exceed, so that its streams stay within their room. */
  readonly rowsPerSweep: number;
  /** Bytes of all weights of blocks and head as stored, and of those that stay on the device. */
  readonly weightBytes: number;
  readonly residentBytes: number;
  /** Most bytes held on the device so far. */
  readonly peakBytes: number;
  /** Begins a sweep. Its steps must not overlap with those of another sweep on the same engine. */
  startSweep(request: Omit<SweepRequest, 'chunkRows'>): Sweep;
  /** A whole sweep: all steps, then the result. */
  sweep(
    request: Omit<SweepRequest, 'chunkRows'>,
    onStep?: (stepsDone: number, steps: number) => void,
  ): Promise<SweepResult>;
  /** @throws AmalgamError `ContextTooLong` */
  openCache(slots: number, capacity: number): KvCache;
  close(): void;
}

/**
 * Opens a model on an engine. Nothing is read until the first sweep.
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
  const model = openModel(architecture, source, operations, workspace, {
    residentBytes: settings.residentBytes,
    // the fewest rows that go through a tile at once, times its weights of two bytes or four
    tileBytes: Math.min(
      settings.tileBytes,
      engine.maxBufferBytes,
      Math.floor((2 * queue.dispatchWork) / CHUNK_ROWS.least),
    ),
  });
  const chunkRows = rowsOfChunk(architecture, queue.dispatchWork, settings.activationBytes);
  const startRunnerSweep: Runner['startSweep'] = (request) => startSweep(model, { ...request, chunkRows });
  return {
    architecture,
    engine,
    rowsPerSweep: Math.max(chunkRows, Math.floor(settings.streamBytes / (architecture.hidden * 4))),
    weightBytes: model.weightBytes,
    residentBytes: model.residentBytes,
    get peakBytes() {
      return queue.peakBytes;
    },
    startSweep: startRunnerSweep,
    async sweep(request, onStep) {
      const sweep = startRunnerSweep(request);
      try {
        while (await sweep.step()) onStep?.(sweep.stepsDone, sweep.steps);
        return await sweep.result();
      } finally {
        sweep.close();
      }
    },
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
  const { blocks, hidden } = architecture;
  const parts = blocks.flatMap((block) => block.steps).flatMap((step) => step.branches);
  const rowBytes = 4 * (hidden + Math.max(...parts.map(({ part }) => kindOf(part).width(part))));
  const largest = Math.max(...leavesOf(blocks).linears.map((l) => l.inputs * l.outputs));
  const rows = Math.floor(Math.min(activationBytes / rowBytes, dispatchWork / largest));
  return Math.min(CHUNK_ROWS.most, Math.max(CHUNK_ROWS.least, rows));
}
