import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Backend } from '../backend/backend';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { philox } from '../backend/philox';
import { AmalgamError } from '../errors';
import { encodeFromF32 } from '../formats/half';
import { partOf } from '../models/architecture';
import { resolveArchitecture } from '../models/resolution';
import { splitLayer } from '../models/tensor-role';
import {
  deviation,
  type FileTensor,
  type Golden,
  goldenWeights,
  loadGolden,
  values,
} from './golden.test.fixture';
import { runOracle } from './oracle';
import { openRunner, type RunnerOptions } from './runner';
import { readRows, sourceOf, TIGHT } from './runner.test.cases';
import type { LowRankUpdate, WeightSource } from './weight-source';

const load = (name: string) => loadGolden(name, async (path) => new Uint8Array(readFileSync(path)));
const open = (
  golden: Golden,
  source: WeightSource,
  options: RunnerOptions = {},
  engine = createCpuBackend(),
) => openRunner(engine, resolveArchitecture(golden.config), source, options);
const flat = (rows: Float64Array[]) => rows.flatMap((row) => [...row]);
const floats = (n: number, seed: number) => {
  const words = new Uint32Array(4);
  return Float32Array.from({ length: n }, (_, i) => {
    philox(i, 0, seed, 9, words);
    return (words[0]! / 2 ** 31 - 1) * 0.3;
  });
};
const codeOf = async (work: () => Promise<unknown>) => {
  try {
    await work();
  } catch (e) {
    if (e instanceof AmalgamError) return [e.code, e.message];
    throw e;
  }
  return ['none', ''];
};

describe('weights', () => {
  it.each(['F16', 'BF16'] as const)('stored as %s are widened, not rounded again', async (dtype) => {
    for (const name of ['llama', 'gpt2']) {
      const golden = await load(name);
      const weights = new Map(
        [...golden.weights].map(([key, t]): [string, FileTensor] => {
          const bytes = new Uint8Array(t.bytes.length / 2);
          encodeFromF32(new Float32Array(t.bytes.buffer), dtype, bytes);
          return [key, { ...t, dtype, bytes }];
        }),
      );
      const runner = open(golden, sourceOf(weights), TIGHT);
      const { logits } = await runner.pass({ sequences: [{ ids: golden.ids, from: 0 }], output: 'logits' });
      const wanted = runOracle(runner.architecture, goldenWeights(runner.architecture, weights), golden.ids);
      expect(deviation(logits[0]!, flat(wanted.logits)).relRms).toBeLessThan(2e-6);
    }
  });

  it.each(['llama', 'gpt2', 'opt'])(
    '%s: low-rank updates compute what the added matrices would',
    async (name) => {
      const golden = await load(name);
      const updates = new Map<string, LowRankUpdate>();
      const merged = new Map(golden.weights);
      for (const [i, [key, t]] of [...golden.weights].entries()) {
        if (
          t.shape.length !== 2 ||
          splitLayer(key) === null ||
          !/(?:q_proj|c_attn|c_proj|fc2|down_proj)/.test(key)
        ) {
          continue;
        }
        const [rows, cols] = t.shape as [number, number];
        const rank = 1 + (i % 5);
        const [left, right, scale] = [floats(rows * rank, i), floats(rank * cols, i + 100), 0.5 + i / 50];
        updates.set(key, { rank, scale, load: async () => ({ left, right }) });
        const w = new Float32Array(t.bytes.slice().buffer);
        for (let r = 0; r < rows; r++) {
          for (let c = 0; c < cols; c++) {
            let sum = 0;
            for (let k = 0; k < rank; k++) sum += left[r * rank + k]! * right[k * cols + c]!;
            w[r * cols + c]! += scale * sum;
          }
        }
        merged.set(key, { ...t, bytes: new Uint8Array(w.buffer) });
      }
      expect(updates.size).toBeGreaterThan(3);
      const runner = open(golden, sourceOf(golden.weights, updates), TIGHT);
      const { logits } = await runner.pass({ sequences: [{ ids: golden.ids, from: 0 }], output: 'logits' });
      const wanted = runOracle(runner.architecture, goldenWeights(runner.architecture, merged), golden.ids);
      expect(deviation(logits[0]!, flat(wanted.logits)).relRms).toBeLessThan(5e-6);
      // and the updates matter
      expect(deviation(logits[0]!, values(golden.golden.get('logits')!)).relRms).toBeGreaterThan(0.01);
    },
  );

  it('refuses updates of what is no linear layer, and factors of another shape', async () => {
    const golden = await load('llama');
    const update = { rank: 2, scale: 1, load: async () => ({ left: floats(4, 1), right: floats(4, 2) }) };
    const onto = (key: string) => sourceOf(golden.weights, new Map([[key, update]]));
    expect((await codeOf(async () => open(golden, onto('model.embed_tokens.weight'))))[0]).toBe(
      'AdapterUnsupported',
    );
    const runner = open(golden, onto('model.layers.0.self_attn.q_proj.weight'));
    const run = () => runner.pass({ sequences: [{ ids: [1, 2] }], output: 'none' });
    expect(await codeOf(run)).toEqual(['ShapeMismatch', expect.stringContaining('q_proj')]);
  });

  it('are read once a pass, in order, two layers on the device at most', async () => {
    const golden = await load('gemma2');
    const reads: string[] = [];
    const stored = sourceOf(golden.weights);
    const source: WeightSource = {
      ...stored,
      read(name, begin, end) {
        reads.push(`${name} ${begin}`);
        return stored.read(name, begin, end);
      },
    };
    const live = new Map<number, number>();
    let most = 0;
    const engine = watchLayers(createCpuBackend(), live, () => {
      most = Math.max(most, live.size);
    });
    const runner = open(golden, source, TIGHT, engine);
    const sequences = [5, 40, 33].map((n) => ({ ids: golden.ids.slice(0, n), from: 1 }));
    await runner.pass({ sequences, output: 'loss' });
    await new Promise((resolve) => setTimeout(resolve));
    expect(most).toBe(2);
    expect(live.size).toBe(0);
    const blockReads = reads.filter((r) => splitLayer(r) !== null);
    expect(new Set(blockReads).size).toBe(blockReads.length);
    const layers = blockReads.map((r) => splitLayer(r)!.index);
    expect(layers).toEqual(layers.toSorted((a, b) => a - b));
    // the second pass reads the blocks again, one that keeps them does not
    reads.length = 0;
    await runner.pass({ sequences, output: 'loss' });
    expect(reads.filter((r) => splitLayer(r) !== null).length).toBe(blockReads.length);
    const keeping = open(golden, source, { residentBytes: 1 << 30 });
    await keeping.pass({ sequences, output: 'loss' });
    expect(keeping.residentBytes).toBe(keeping.weightBytes);
    reads.length = 0;
    await keeping.pass({ sequences, output: 'loss' });
    expect(reads).toEqual([]);
    expect(keeping.peakBytes).toBeGreaterThan(keeping.weightBytes);
  });

  it('of an exclusive source are read only when their layer is due', async () => {
    const golden = await load('llama');
    const events: string[] = [];
    const source = sourceOf(golden.weights);
    const runner = open(golden, {
      ...source,
      exclusive: true,
      read: (name, begin, end) => {
        const layer = splitLayer(name)?.index;
        if (layer !== undefined) events.push(`read ${layer}`);
        return source.read(name, begin, end);
      },
    });
    await runner.pass({
      sequences: [{ ids: golden.ids, from: 1 }],
      output: 'loss',
      taps: { residual: (layer) => void events.push(`arrived ${layer}`) },
    });
    const order = events.filter((e, i) => e !== events[i - 1]);
    expect(order).toEqual(['arrived 0', 'read 0', 'arrived 1', 'read 1', 'arrived 2']);
  });

  it('that cannot be read fail the pass and can be read again', async () => {
    const golden = await load('llama');
    const source = sourceOf(golden.weights);
    let broken = true;
    const runner = open(golden, {
      ...source,
      read: async (name, begin, end) => {
        if (broken && name.includes('layers.1.')) throw new AmalgamError('Offline', 'Gone.', 'Wait.');
        return source.read(name, begin, end);
      },
    });
    const run = () => runner.pass({ sequences: [{ ids: golden.ids, from: 1 }], output: 'loss' });
    expect((await codeOf(run))[0]).toBe('Offline');
    broken = false;
    expect((await run()).losses[0]!.length).toBe(golden.ids.length - 1);
  });
});

describe('sequences', () => {
  it.each(['llama', 'gemma3', 'bloom', 'opt_postnorm_proj'])('%s: together as each alone', async (name) => {
    const golden = await load(name);
    const runner = open(golden, sourceOf(golden.weights), TIGHT);
    const parts = [
      [0, 3],
      [5, 39],
      [1, 2],
      [2, 33],
      [7, 20],
    ].map(([a, b]) => golden.ids.slice(a, b));
    const all = await runner.pass({ sequences: parts.map((ids) => ({ ids, from: 0 })), output: 'logits' });
    for (const [i, ids] of parts.entries()) {
      const alone = await runner.pass({ sequences: [{ ids, from: 0 }], output: 'logits' });
      expect(all.logits[i]).toEqual(alone.logits[0]);
    }
    const losses = await runner.pass({ sequences: parts.map((ids) => ({ ids, from: 1 })), output: 'loss' });
    expect(losses.losses.map((l) => l.length)).toEqual(parts.map((ids) => ids.length - 1));
    const late = await runner.pass({ sequences: [{ ids: parts[1]!, from: 30 }], output: 'loss' });
    expect(late.losses[0]).toEqual(losses.losses[1]!.slice(29));
  });

  it.each(['llama', 'gemma3', 'gpt2', 'bloom'])('%s: a cache continues where it was left', async (name) => {
    const golden = await load(name);
    const runner = open(golden, sourceOf(golden.weights), TIGHT);
    const whole = await runner.pass({ sequences: [{ ids: golden.ids, from: 0 }], output: 'logits' });
    const { vocab } = runner.architecture;
    const cache = runner.openCache(3, golden.ids.length);
    const cuts = [0, 1, 2, 20, 21, golden.ids.length];
    for (let i = 1; i < cuts.length; i++) {
      const [start, end] = [cuts[i - 1]!, cuts[i]!];
      const ids = golden.ids.slice(start, end);
      // another sequence in another slot must not disturb it
      const other = { ids: golden.ids.slice(3, 3 + ids.length), start, slot: 0 };
      const { logits } = await runner.pass({
        sequences: [other, { ids, start, slot: 2, from: 0 }],
        output: 'logits',
        cache,
      });
      expect(logits[1]).toEqual(whole.logits[0]!.slice(start * vocab, end * vocab));
    }
    cache.close();
  });
});

describe('refusals', () => {
  it('name the token, the length and the empty text', async () => {
    const golden = await load('gpt2');
    const runner = open(golden, sourceOf(golden.weights));
    const run = (ids: number[]) => codeOf(() => runner.pass({ sequences: [{ ids }], output: 'none' }));
    expect(await run([])).toEqual(['TextEmpty', expect.any(String)]);
    expect(await run([1, 131])).toEqual(['TokenOutOfRange', expect.stringContaining('Token 1 is 131')]);
    expect((await run([1, -1]))[0]).toBe('TokenOutOfRange');
    expect((await run([0.5]))[0]).toBe('TokenOutOfRange');
    expect(await run(Array(73).fill(1))).toEqual(['ContextTooLong', expect.stringContaining('72')]);
    expect((await run(Array(72).fill(1)))[0]).toBe('none');
    const cache = runner.openCache(1, 4);
    const cached = (start: number) => () =>
      runner.pass({ sequences: [{ ids: [1, 2], start }], output: 'none', cache });
    expect((await codeOf(cached(2)))[0]).toBe('none');
    expect((await codeOf(cached(3)))[0]).toBe('ContextTooLong');
  });

  it('say that a text is longer than the memory of the device, before anything is run', async () => {
    const golden = await load('llama');
    const inner = createCpuBackend();
    const attention = partOf(resolveArchitecture(golden.config).blocks[0]!, 'attention')!;
    const rows = 20;
    const maxBufferBytes = rows * attention.keyValueHeads * attention.headDim * 4;
    const small: Backend = { ...inner, maxBufferBytes };
    const runner = open(golden, sourceOf(golden.weights), TIGHT, small);
    const run = (length: number) =>
      codeOf(() => runner.pass({ sequences: [{ ids: golden.ids.slice(0, length) }], output: 'none' }));
    expect(await run(rows)).toEqual(['none', '']);
    expect(await run(rows + 1)).toEqual(['ContextTooLong', expect.stringContaining(`${maxBufferBytes}`)]);
    expect((await codeOf(async () => runner.openCache(2, rows)))[0]).toBe('ContextTooLong');
  });

  it('name the layer where NaN or infinity first appears', async () => {
    const golden = await load('llama');
    const broken = (key: string, value: number) => {
      const t = golden.weights.get(key)!;
      const bytes = t.bytes.slice();
      new Float32Array(bytes.buffer)[5] = value;
      return sourceOf(new Map([...golden.weights, [key, { ...t, bytes }]]));
    };
    const run = (source: WeightSource) => {
      const runner = open(golden, source);
      return codeOf(() => runner.pass({ sequences: [{ ids: golden.ids, from: 1 }], output: 'loss' }));
    };
    const table = (value: number) => {
      const t = golden.weights.get('model.embed_tokens.weight')!;
      const bytes = t.bytes.slice();
      new Float32Array(bytes.buffer)[golden.ids[7]! * 48] = value;
      return sourceOf(new Map([...golden.weights, ['model.embed_tokens.weight', { ...t, bytes }]]));
    };
    expect(await run(table(Number.POSITIVE_INFINITY))).toEqual([
      'NonFinite',
      expect.stringContaining('embedding'),
    ]);
    expect(await run(broken('model.layers.0.mlp.down_proj.weight', Number.NaN))).toEqual([
      'NonFinite',
      expect.stringContaining('layer 0'),
    ]);
    expect(await run(broken('model.layers.1.self_attn.q_proj.weight', Number.NEGATIVE_INFINITY))).toEqual([
      'NonFinite',
      expect.stringContaining('layer 1'),
    ]);
    expect(await run(broken('lm_head.weight', Number.NaN))).toEqual([
      'NonFinite',
      expect.stringContaining('logits'),
    ]);
  });

  it('a fired signal stops between steps', async () => {
    const golden = await load('llama');
    const runner = open(golden, sourceOf(golden.weights));
    const stop = new AbortController();
    const seen: number[] = [];
    const run = () =>
      runner.pass(
        { sequences: [{ ids: golden.ids, from: 1 }], output: 'loss', signal: stop.signal },
        (done) => {
          seen.push(done);
          if (done === 2) stop.abort();
        },
      );
    expect((await codeOf(run))[0]).toBe('Canceled');
    expect(seen).toEqual([1, 2]);
  });

  it('taps see every row of every site once', async () => {
    const golden = await load('phi3');
    const runner = open(golden, sourceOf(golden.weights), TIGHT);
    const seen = new Map<string, number>();
    await runner.pass({
      sequences: [{ ids: golden.ids }],
      output: 'none',
      taps: {
        async site(layer, site, weights, rows) {
          expect(weights.every((w) => golden.weights.has(w))).toBe(true);
          expect((await readRows(rows)).length).toBe(rows.rows * rows.width);
          const key = `${layer} ${site}`;
          seen.set(key, (seen.get(key) ?? 0) + rows.pieces.reduce((sum, p) => sum + p.count, 0));
        },
      },
    });
    expect(seen.size).toBe(8);
    expect([...seen.values()].every((rows) => rows === golden.ids.length)).toBe(true);
  });
});

/** The engine with the layers whose weights it holds counted in `live`. */
function watchLayers(engine: Backend, live: Map<number, number>, changed: () => void): Backend {
  const count = (label: string, by: number) => {
    const layer = splitLayer(label)?.index;
    if (layer === undefined) return;
    const n = (live.get(layer) ?? 0) + by;
    if (n === 0) live.delete(layer);
    else live.set(layer, n);
    changed();
  };
  return {
    ...engine,
    allocate(byteLength, label) {
      count(label, 1);
      return engine.allocate(byteLength, label);
    },
    free(buffer) {
      count(buffer.label, -1);
      engine.free(buffer);
    },
  };
}
