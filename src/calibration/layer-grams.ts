/**
 * One pass of every contributor over its own text, layer by layer and side by side, with the Gram matrices of one layer
 * at a time.
 */

import type { Backend, BackendBuffer } from '../backend/backend';
import type { TappedRows } from '../forward/pass';
import type { Runner } from '../forward/runner';
import type { Walk } from '../forward/walk';
import type { Block, Linear } from '../models/architecture';
import { type LinearSite, linearSites } from '../models/claim';
import { throwIfCanceled } from '../sources/cancellation';
import { type CrossGram, formFor, type Gram, holdRows, openCrossGram, openGram } from './gram';

export interface Passage {
  runner: Runner;
  sequences: readonly (readonly number[])[];
}

/** Gram matrices of a layer's inputs, one map per contributor. */
export type LayerGrams = readonly ReadonlyMap<LinearSite, Gram>[];

interface PassageOptions {
  engine: Backend;
  passages: readonly Passage[];
  form: 'full' | 'diagonal';
  /** The inputs of a layer that are wanted; none for one that is done already. */
  wanted(layer: number): ReadonlySet<LinearSite>;
  signal?: AbortSignal;
  /** Called when a contributor (of a match: when all) is through a layer, or the embedding (−1). */
  onStep?(layer: number): void;
}

/**
 * Calls `visit` with the Gram matrices of every layer that is wanted, in order.
 * @throws AmalgamError `NonFinite` naming the layer, `Canceled`, `GpuOutOfMemory` and what running throws
 */
export async function eachLayerGrams(
  options: PassageOptions,
  visit: (layer: number, grams: LayerGrams) => Promise<void>,
): Promise<void> {
  const { engine, passages, form, signal } = options;
  const layers = passages[0]!.runner.architecture.blocks.length;
  const last = Array.from({ length: layers }, (_, i) => i).findLast((i) => options.wanted(i).size > 0);
  if (last === undefined) return;
  let grams: Map<LinearSite, Gram>[] = [];
  const close = () => {
    for (const gram of grams.flatMap((bySite) => [...bySite.values()])) gram.close();
    grams = passages.map(() => new Map());
  };
  close();
  const passes = passages.map(({ runner, sequences }, i) =>
    runner.startPass({
      sequences: sequences.map((ids) => ({ ids })),
      output: 'none',
      taps: {
        site(layer, site, _, rows) {
          if (!options.wanted(layer).has(site)) return;
          const mine = grams[i]!;
          const gram = mine.get(site) ?? openGram(engine, rows.width, formFor(engine, rows.width, form));
          mine.set(site, gram);
          gram.add(rows);
        },
      },
      ...(signal && { signal }),
    }),
  );
  try {
    for (let layer = -1; layer <= last; layer++) {
      for (const pass of passes) {
        await pass.step();
        // waits for the device, and throws where NaN came up before anything is made of it
        await pass.result();
        options.onStep?.(layer);
      }
      if (layer < 0 || options.wanted(layer).size === 0) continue;
      await visit(layer, grams);
      close();
    }
  } finally {
    close();
    for (const pass of passes) pass.close();
  }
}

// The contributors and the model merged so far, side by side through the contributors' texts, layer by layer: for every
// group of linear layers the products of their inputs in the merged model, and of what those inputs have become otherwise
// than in the contributor. Whoever visits solves for the merged layers, which then stand in the merged model
// before anything behind them is run.

/** Gram and cross-Gram matrix of one site and one contributor. */
interface MatchedGrams {
  /** Of the inputs in the merged model, over the contributor's text. */
  gram: Gram;
  cross: CrossGram;
  /** Of the stream that the outputs are added to. */
  stream?: CrossGram;
}

interface MatchOptions extends Omit<PassageOptions, 'form'> {
  /** Whether what the merged model's stream lacks is measured where outputs are added to it. */
  streams: boolean;
  /** The merge: it reads what was solved by the time a linear layer is wanted. */
  merged: Runner;
}

/**
 * Calls `visit` for every site that is wanted, in the order data flows.
 * @throws AmalgamError `NonFinite` naming the layer, `Canceled`, `GpuOutOfMemory` and what running throws
 */
export async function eachMatchedSite(
  options: MatchOptions,
  visit: (layer: number, site: LinearSite, grams: readonly MatchedGrams[], share: number) => Promise<void>,
): Promise<void> {
  const { passages, merged, wanted, signal, onStep } = options;
  const { blocks } = merged.architecture;
  const last = blocks.findLastIndex((_, i) => wanted(i).size > 0);
  if (last < 0) return;
  const texts = passages.map(({ sequences }) => sequences);
  const own = passages.map(({ runner }, i) => runner.openWalk([texts[i]!], signal));
  const merge = merged.openWalk(texts, signal);
  const walks = [...own, merge];
  try {
    for (const walk of walks) await walk.begin();
    onStep?.(-1);
    for (let layer = 0; layer <= last; layer++) {
      const block = blocks[layer]!;
      const sites = linearSites(block).filter(({ site }) => wanted(layer).has(site));
      for (const walk of own) await walk.open(layer);
      await merge.open(layer, new Set(sites.flatMap(({ linears }) => linears)));
      for (const [step, { branches }] of block.steps.entries()) {
        const names = branches.map(({ name }) => name);
        const mine = sites.filter(({ site }) => names.some((name) => isOf(site, name)));
        for (const walk of walks) walk.enter(step);
        for (const [at, site] of mine.entries()) {
          const share = options.streams ? shareOf(block.steps[step]!, site.site) : 0;
          const through = at === mine.length - 1;
          const grams = await gramsOf(options, { own, merge, step, site, through, share });
          try {
            await visit(layer, site.site, grams, share);
          } finally {
            closeAll(grams);
          }
          for (const linear of site.linears) await merge.renew(linear);
        }
        if (mine.length === 0) for (const walk of own) await runAll(walk, step);
        await runAll(merge, step);
      }
      for (const walk of walks) await walk.leave();
      onStep?.(layer);
    }
  } finally {
    for (const walk of walks) walk.close();
  }

  function isOf(site: LinearSite, branch: string): boolean {
    return site === `${branch}_in` || site === `${branch}_out`;
  }
  async function runAll(walk: Walk, step: number): Promise<void> {
    for (const [text, chunks] of walk.chunks.entries()) {
      for (let chunk = 0; chunk < chunks; chunk++) await walk.run(step, text, chunk);
    }
  }
}

interface SiteAt {
  own: readonly Walk[];
  merge: Walk;
  step: number;
  site: { site: LinearSite; inputs: number; linears: readonly Linear[] };
  /** The contributors go through the step: no site of it comes after this one. */
  through: boolean;
  share: number;
}

/**
 * Outputs of a site that would stand for the stream as its step found it: of the last branch, where nothing comes between its last
 * layer and the stream, by the factors of both; 0 elsewhere.
 */
function shareOf({ branches, keep = 1, sum }: Block['steps'][number], site: LinearSite): number {
  const { name, out, scale, part } = branches.at(-1)!;
  const isBetween = out || sum || ('factor' in part && part.factor);
  return isBetween || site !== `${name}_out` ? 0 : keep / scale;
}

/** Both products of a site over every text. The caller closes them. */
async function gramsOf(
  { engine, merged, signal }: MatchOptions,
  { own, merge, step, site: { site, inputs }, through, share }: SiteAt,
): Promise<MatchedGrams[]> {
  const all: MatchedGrams[] = [];
  let held: BackendBuffer[] = [];
  const { hidden } = merged.architecture;
  try {
    for (const [text, walk] of own.entries()) {
      const gram = openGram(engine, inputs, formFor(engine, inputs, 'full'));
      const cross = openCrossGram(engine, gram.blocks);
      const stream = share === 0 ? undefined : openCrossGram(engine, gram.blocks, hidden);
      all.push({ gram, cross, ...(stream && { stream }) });
      for (let chunk = 0; chunk < walk.chunks[0]!; chunk++) {
        throwIfCanceled(signal);
        const look = {
          site,
          see(rows: TappedRows, entered: TappedRows) {
            held = [rows, ...(stream ? [entered] : [])].map(holdRows);
          },
        };
        await (through ? walk.run(step, 0, chunk, look) : walk.runTo(step, 0, chunk, look));
        await merge.runTo(step, text, chunk, {
          site,
          see(rows, entered) {
            gram.add(rows);
            cross.add(rows, rows, held[0]!);
            stream?.add(rows, entered, held[1]!);
          },
        });
        for (const buffer of held) engine.free(buffer);
        held = [];
      }
    }
    return all;
  } catch (thrown) {
    closeAll(all);
    for (const buffer of held) engine.free(buffer);
    throw thrown;
  }
}

function closeAll(grams: readonly MatchedGrams[]): void {
  for (const { gram, cross, stream } of grams) for (const each of [gram, cross, stream]) each?.close();
}
