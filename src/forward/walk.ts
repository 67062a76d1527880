/**
 * A model that is walked through site by site: the inputs of one group of linear layers over all of its texts, before any
 * of those layers is run. Whoever walks may put other weights in their place before it goes on. Streams of all texts and
 * one block of weights are held; what lies between two sites of a step is run again.
 */
import type { Linear } from '../models/architecture';
import type { LinearSite } from '../models/claim';
import { throwIfCanceled } from '../sources/cancellation';
import { enterStep, leaveBlock, runStep } from './block';
import { type Chunk, checkSequences, cutChunks } from './chunk';
import { embedChunks, perLayerRows, streamName } from './embedding';
import type { Model } from './model';
import { refuseNonFinite } from './non-finite';
import { requireOneStream } from './parts/kinds';
import type { BlockPassage, BlockWeights } from './parts/part';
import { checkKeys, longSequences, type TappedRows } from './pass';

/** Token ids of the sequences of one text. */
export type WalkText = readonly (readonly number[])[];

/** Called with the rows that enter the linear layers of a site, and the stream as the step found it. */
interface Look {
  site: LinearSite;
  see(rows: TappedRows, stream: TappedRows): void;
}

export interface Walk {
  /** Chunks of each text. Two models of one architecture on one engine cut equal texts alike. */
  readonly chunks: readonly number[];
  /** Embeds every text. @throws AmalgamError `Canceled` and what reading weights throws */
  begin(): Promise<void>;
  /** Loads a block but for linear maps that come later ({@link Walk.renew}). */
  open(block: number, without?: ReadonlySet<Linear>): Promise<void>;
  /** Reads a linear map of the open block anew. */
  renew(linear: Linear): Promise<void>;
  /** Begins a step of the open block in every chunk. */
  enter(step: number): void;
  /** Runs a step of one chunk, and looks at a site on the way. */
  run(step: number, text: number, chunk: number, look?: Look): Promise<void>;
  /** Runs a step of one chunk to a site and no further; its stream stays as it is. */
  runTo(step: number, text: number, chunk: number, look: Look): Promise<void>;
  /** Ends the open block and waits for the device. @throws AmalgamError `NonFinite` naming the block */
  leave(): Promise<void>;
  close(): void;
}

/** Ends a step at the site that was looked at. */
class Arrived extends Error {}

/** @throws AmalgamError `TextEmpty`, `TokenOutOfRange`, `ContextTooLong` */
export function openWalk(
  model: Model,
  texts: readonly WalkText[],
  chunkRows: number,
  signal?: AbortSignal,
): Walk {
  const { architecture, operations: op, workspace } = model;
  const { hidden, blocks } = architecture;
  const { queue } = op;
  requireOneStream(architecture, 'be walked through');
  const cut = texts.map((sequences) => {
    const given = sequences.map((ids) => ({ ids }));
    checkSequences(given, architecture);
    return cutChunks(given, chunkRows, undefined, longSequences(architecture));
  });
  const chunks = cut.flat();
  checkKeys(model, chunks);
  const first = cut.map((_, text) => cut.slice(0, text).reduce((sum, of) => sum + of.length, 0));
  const counts = workspace.take('counts', (blocks.length + 1) * 4);
  let block: { index: number; weights: BlockWeights } | undefined;

  const tables = (k: number, chunk: Chunk) => ({
    places: workspace.take(`places ${k}`, chunk.places.byteLength),
    groups: workspace.take(`groups ${k}`, chunk.groups.byteLength),
    pieces: workspace.take(`pieces ${k}`, chunk.runs.byteLength),
  });
  const passageOf = (k: number): BlockPassage => {
    const chunk = chunks[k]!;
    return {
      operations: op,
      workspace,
      hidden,
      chunk,
      stream: streamName(k),
      ...tables(k, chunk),
      ...perLayerRows(model, k, chunk.rows),
      state: ({ name, per, width }) =>
        workspace.take(name, (per === 'position' ? chunk.keyRows : chunk.slots) * width * 4),
    };
  };
  const opened = () => {
    if (!block) throw new Error('no block is open');
    return block;
  };
  const looking = (passage: BlockPassage, look: Look, stop: boolean): BlockPassage => ({
    ...passage,
    onSite(site, linears, { buffer, stride }) {
      if (site !== look.site) return;
      const { rows, pieces } = passage.chunk;
      const stream = { buffer: workspace.take(passage.stream, rows * hidden * 4), stride: hidden };
      const seen = { rows, pieces, queue };
      look.see({ ...seen, buffer, stride, width: linears[0]!.inputs }, { ...seen, ...stream, width: hidden });
      if (stop) throw new Arrived();
    },
  });
  const countNonFinite = (slot: number) => {
    for (const [k, { rows }] of chunks.entries()) {
      op.countNonFinite(workspace.take(streamName(k), rows * hidden * 4), rows * hidden, counts, slot);
    }
  };
  const checkCounts = async () => {
    const [bytes] = await queue.read([{ buffer: counts, byteLength: (blocks.length + 1) * 4 }]);
    refuseNonFinite(new Uint32Array(bytes!.buffer));
  };
  const run = async (step: number, text: number, chunk: number, look?: Look, stop = false) => {
    throwIfCanceled(signal);
    const { weights } = opened();
    const passage = passageOf(first[text]! + chunk);
    const steps = weights.block.steps;
    await runStep(weights, steps[step]!, look ? looking(passage, look, stop) : passage);
    await queue.breathe();
  };

  return {
    chunks: cut.map((of) => of.length),
    async begin() {
      queue.engine.clear(counts);
      await model.ready(signal);
      for (const [k, chunk] of chunks.entries()) {
        const { places, groups, pieces } = tables(k, chunk);
        queue.write(places, 0, chunk.places);
        queue.write(groups, 0, chunk.groups);
        queue.write(pieces, 0, chunk.runs);
      }
      await embedChunks(model, chunks, signal);
      countNonFinite(0);
      await checkCounts();
    },
    async open(index, without = new Set()) {
      block = { index, weights: await model.block(index, without, signal) };
    },
    renew: (linear) => opened().weights.renew(linear, signal),
    enter(step) {
      const { weights } = opened();
      for (const k of chunks.keys()) enterStep(weights, weights.block.steps[step]!, passageOf(k));
    },
    run: (step, text, chunk, look) => run(step, text, chunk, look),
    async runTo(step, text, chunk, look) {
      try {
        await run(step, text, chunk, look, true);
      } catch (thrown) {
        if (!(thrown instanceof Arrived)) throw thrown;
        await queue.breathe();
      }
    },
    async leave() {
      const { index, weights } = opened();
      for (const k of chunks.keys()) leaveBlock(weights, passageOf(k));
      countNonFinite(index + 1);
      await checkCounts();
      weights.close();
      block = undefined;
    },
    close() {
      block?.weights.close();
      block = undefined;
    },
  };
}
