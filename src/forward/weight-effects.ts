/**
 * Effect of each weight of a model on a text: how much more probable the text is than with another model's weight in its place,
 * all others as they are: E(W) = Σ ln p(text | model) − Σ ln p(text | model, W from the other), in nats. Exact, one weight at a
 * time; the stream that enters its block is kept from one whole pass, and only what comes behind it is run again.
 */
import type { Linear } from '../models/architecture';
import { claimTensors, leavesOf } from '../models/claim';
import type { Sequence } from './chunk';
import { createWeightReader, type DeviceLinear } from './device-weights';
import type { Model } from './model';
import { type Pass, type PassRequest, wholePass } from './pass';
import { readRows } from './queue';
import type { WeightSource } from './weight-source';

export interface EffectsOfWeights {
  sequence: Sequence;
  /** The weights that are put in their place, of the same architecture. */
  others: WeightSource;
  /** Called for every linear map of the blocks, by its stored name, from the first block on; `of`: how many there are. */
  onEffect(name: string, effect: number, of: number): void;
  signal?: AbortSignal;
}

/** @returns Σ ln p of the text under the model itself. @throws what passes and reading weights throw; AmalgamError `ArchitectureUnsupported` */
export async function measureWeightEffects(
  model: Model,
  startPass: (request: Omit<PassRequest, 'chunkRows'>) => Pass,
  { sequence, others, onEffect, signal }: EffectsOfWeights,
  tileBytes: number,
): Promise<number> {
  const { architecture, operations, reader } = model;
  const other = createWeightReader(
    operations.queue,
    others,
    claimTensors(architecture, others.tensors),
    tileBytes,
  );
  const streams: Float32Array<ArrayBuffer>[][] = [];
  const lossOf = async (more: Pick<PassRequest, 'enter' | 'taps'>) => {
    const request = { sequences: [sequence], output: 'loss' as const, ...(signal && { signal }) };
    const { losses } = await wholePass(startPass({ ...request, ...more }));
    return losses[0]!.reduce((sum, loss) => sum + loss, 0);
  };
  const whole = await lossOf({
    taps: {
      async residual(layer, rows) {
        streams[layer] ??= [];
        streams[layer].push(await readRows(rows));
      },
    },
  });
  const weights = architecture.blocks.map((block) => {
    const named = new Map<string, Linear[]>();
    for (const linear of leavesOf(block).linears) {
      const { name } = reader.stored(linear.weight);
      named.set(name, [...(named.get(name) ?? []), linear]);
    }
    return named;
  });
  const count = weights.reduce((sum, { size }) => sum + size, 0);
  for (const [layer, named] of weights.entries()) {
    for (const [name, linears] of named) {
      const instead = new Map<Linear, DeviceLinear>();
      try {
        for (const linear of linears) instead.set(linear, await other.linear(linear, signal));
        const without = await lossOf({
          enter: {
            layer,
            streams: streams[layer]!,
            weights: (own) => ({ ...own, linear: (linear) => instead.get(linear) ?? own.linear(linear) }),
          },
        });
        onEffect(name, without - whole, count);
      } finally {
        for (const linear of instead.values()) other.free(linear);
      }
    }
  }
  return -whole;
}
