/**
 * One pass of every contributor over its own text, layer by layer and side by side, with the Gram matrices of one layer
 * at a time.
 */
import type { Backend } from '../backend/backend';
import type { Runner } from '../forward/runner';
import type { LinearSite } from '../models/claim';
import { formFor, type Gram, openGram } from './gram';

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
  /** Called when a contributor is through a layer, or the embedding (−1). */
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
