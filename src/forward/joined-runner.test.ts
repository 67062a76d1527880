/** One model on several backends: the bits of one backend, every weight read once. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { resolveArchitecture } from '../models/resolution';
import type { Sequence } from './chunk';
import { loadGolden } from './golden.test.fixture';
import { openJoinedRunner } from './joined-runner';
import { sourceOf, TIGHT } from './runner.test.cases';
import type { WeightSource } from './weight-source';

/** The golden's model on so many backends, and how many bytes came from its source. */
async function open(name: string, engines: number, change: Partial<WeightSource> = {}) {
  const golden = await loadGolden(name, async (path) => new Uint8Array(readFileSync(path)));
  const stored = sourceOf(golden.weights);
  const counted = { bytes: 0 };
  const source: WeightSource = {
    ...stored,
    read(...asked) {
      counted.bytes += asked[2] - asked[1];
      return stored.read(...asked);
    },
    ...change,
  };
  const backends = Array.from({ length: engines }, () => createCpuBackend());
  const runner = openJoinedRunner(backends, resolveArchitecture(golden.config), source, TIGHT);
  return { golden, runner, counted };
}

const families = ['llama', 'gemma3', 'bloom', 'opt_postnorm_proj'];

it.each(families)('%s: losses, logits and flags have the bits of one backend', async (name) => {
  const { golden, runner: alone } = await open(name, 1);
  const pieces = [
    [0, 19],
    [3, 9],
    [5, 38],
    [9, 11],
    [30, 36],
  ] as const;
  const sequences = pieces.map(([from, to]): Sequence => ({ ids: golden.ids.slice(from, to), from: 1 }));
  // the third and fourth continue the first and second
  sequences[2] = { ...sequences[2]!, after: 0 };
  sequences[3] = { ...sequences[3]!, after: 1 };
  for (const output of ['loss', 'logits'] as const) {
    const expected = await alone.pass({ sequences, output });
    for (const engines of [2, 3, 5]) {
      const { runner } = await open(name, engines);
      const steps: number[] = [];
      const found = await runner.pass({ sequences, output }, (done) => steps.push(done));
      expect(found).toEqual(expected);
      expect(found.losses.length + found.logits.length).toBe(sequences.length);
      expect(steps).toEqual(steps.map((_, i) => i + 1));
      runner.close();
    }
  }
});

it('reads each weight once, whether layers are read ahead or not, several at once or one', async () => {
  const ids = (golden: { ids: ArrayLike<number> }) => Array.from(golden.ids).slice(0, 12);
  const passes = async (engines: number, change: Partial<WeightSource>) => {
    const { golden, runner, counted } = await open('llama', engines, change);
    const sequences = [0, 1, 2, 3].map(() => ({ ids: ids(golden), from: 1 }));
    await runner.pass({ sequences, output: 'loss' });
    const first = counted.bytes;
    await runner.pass({ sequences, output: 'loss' });
    return [first, counted.bytes - first];
  };
  const alone = await passes(1, {});
  for (const change of [{}, { exclusive: true }, { exclusive: true, atOnce: 3 }]) {
    expect(await passes(3, change)).toEqual(alone);
  }
});

it('a failure of one is thrown when none is at work any more, and a later pass goes through', async () => {
  const golden = await loadGolden('llama', async (path) => new Uint8Array(readFileSync(path)));
  const stored = sourceOf(golden.weights);
  let broken = true;
  const { runner } = await open('llama', 2, {
    async read(name, begin, end) {
      if (broken && name.includes('layers.1.')) throw new Error('damaged');
      return stored.read(name, begin, end);
    },
  });
  const sequences = [0, 5].map((from) => ({ ids: golden.ids.slice(from, 20), from: 1 }));
  await expect(runner.pass({ sequences, output: 'loss' })).rejects.toThrow('damaged');
  broken = false;
  const { runner: alone } = await open('llama', 1);
  expect(await runner.pass({ sequences, output: 'loss' })).toEqual(
    await alone.pass({ sequences, output: 'loss' }),
  );
});
