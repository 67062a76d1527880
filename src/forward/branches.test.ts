/** Sequences that continue another of the same pass, which is run once for all of them. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { resolveArchitecture } from '../models/resolution';
import { loadGolden } from './golden.test.fixture';
import { openRunner } from './runner';
import { sourceOf, TIGHT } from './runner.test.cases';

it.each(['llama', 'gemma3', 'bloom', 'opt_postnorm_proj'])(
  '%s: a beginning that is run once, and what continues it, as each whole alone',
  async (name) => {
    const golden = await loadGolden(name, async (path) => new Uint8Array(readFileSync(path)));
    const architecture = resolveArchitecture(golden.config);
    const runner = openRunner(createCpuBackend(), architecture, sourceOf(golden.weights), TIGHT);
    const asks = (ids: ArrayLike<number>) =>
      Array.from({ length: ids.length - 1 }, (_, at) => ({ at, id: ids[at + 1]! }));
    const contexts = [golden.ids.slice(0, 19), golden.ids.slice(3, 9)];
    const endings = [golden.ids.slice(30, 36), golden.ids.slice(2, 38), golden.ids.slice(9, 11)];
    const branches = contexts.flatMap((_, after) => endings.map((ids) => ({ ids, after, asks: asks(ids) })));
    const beginnings = contexts.map((ids) => ({
      ids,
      asks: endings.map((e) => ({ at: ids.length - 1, id: e[0]! })),
    }));
    const { losses, greedy } = await runner.pass({
      sequences: [...beginnings, ...branches],
      output: 'loss',
    });
    for (const [c, context] of contexts.entries()) {
      for (const [e, ending] of endings.entries()) {
        const ids = [...context, ...ending];
        const [whole, logits] = [
          await runner.pass({ sequences: [{ ids, from: context.length }], output: 'loss' }),
          await runner.pass({ sequences: [{ ids, from: context.length - 1 }], output: 'logits' }),
        ];
        const branch = contexts.length + c * endings.length + e;
        expect([losses[c]![e], ...losses[branch]!]).toEqual([...whole.losses[0]!]);
        const flags = [greedy[c]![e], ...greedy[branch]!];
        expect(flags).toEqual([...whole.greedy[0]!]);
        const { vocab } = runner.architecture;
        for (const [i, id] of [...ending].entries()) {
          const row = logits.logits[0]!.subarray(i * vocab, (i + 1) * vocab);
          expect(flags[i]).toBe(row[id] === Math.max(...row) ? 1 : 0);
        }
      }
    }
  },
);
