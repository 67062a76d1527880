/** A merge that is killed anywhere resumes and gives the bytes of one that was not. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { goldenFolder } from '../../e2e/goldens';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { parseRecipe } from '../formats/recipe-yaml';
import { memoryFolder, openerOf } from '../inputs/memory-models.test.support';
import { methodById } from '../merge/methods';
import type { Plan } from '../merge/plan/plan';
import { makePlan } from '../merge/plan/recipe-plan';
import { finishShards } from '../merge/plan/shards';
import { runPlan } from '../merge/run/run';
import type { TensorReport } from '../reports/job';
import type { WrittenShard } from '../write/destination';
import { JOURNAL, type MemoryDisk, memoryDisk } from '../write/memory-destination.test.support';
import { readJournal } from '../write/run-journal';
import type { FilePlan, ShardPlan } from '../write/shard-plan';
import { ShardWriter } from '../write/shard-writer';
import { type HashedPieces, openRunRecord } from './run-record';

const golden = goldenFolder('mergekit');
const file = (name: string) => Uint8Array.from(readFileSync(join(golden, name)));
const folders = ['base', 'a', 'b', 'c'].map((name) =>
  memoryFolder(name, {
    'config.json': readFileSync(join(golden, 'config.json'), 'utf8'),
    'model.safetensors': file(`in_${name}.safetensors`),
  }),
);
const RECIPE = `${readFileSync(join(golden, 'ties.yml'), 'utf8')}\namalgam: { shard_bytes: 60000 }\n`;

interface Merged {
  tensors: TensorReport[];
  shards: WrittenShard[];
  /** Tensors that were computed, not taken over. */
  computed: number;
}

let holdsHashes = true;
/** The hashes of safe points, held back. */
const hashes: { hash: Promise<string>; tell: (hash: string) => void }[] = [];

/** One attempt at the merge, as the merge job makes it; hashes come after every `late`-th tensor. */
async function attempt(
  plan: Plan,
  shards: ShardPlan[],
  disk: MemoryDisk,
  continues = true,
  late = 1,
  beside?: FilePlan,
  pieces: HashedPieces = new Map(),
): Promise<Merged> {
  hashes.length = 0;
  const destination = disk.open(continues);
  const record = await openRunRecord(destination, true, 0);
  const engine = createCpuBackend();
  await record.begin(plan, engine);
  const done = await record.point(
    shards,
    beside,
    async () => pieces,
    new AbortController().signal,
    () => {},
  );
  let computed = 0;
  let finished = 0;
  const merged = await runPlan<WrittenShard>({
    plan,
    shards,
    engine,
    // a merge that ends behind every tensor
    unitBytes: 0,
    methods: methodById,
    done,
    ...(beside && {
      encoding: {
        encoder: (_, append) => ({ append, finishTensor: async () => {} }),
        beside: { plan: beside, open: () => record.openBeside() },
      },
    }),
    read: async (ref, begin, end) => {
      const folder = folders.find(({ path }) => path === ref.folder)!;
      const source = folder.files.find(({ path }) => path === ref.file)!.open();
      return source.read(ref.begin + begin, ref.begin + end);
    },
    openShard: async (shard, skipped) => {
      const sink = await record.openShard(shard, skipped);
      return {
        ...sink,
        async finishTensors(reports, parts) {
          await sink.finishTensors!(reports, parts);
          // hashes that are not held come in between
          if (!holdsHashes) await new Promise((resolve) => setTimeout(resolve));
          if (++finished % late === 0) for (const { hash, tell } of hashes.splice(0)) tell(await hash);
        },
      };
    },
    onTensor: () => computed++,
  });
  if (beside) merged.shards.push(await (await record.openBeside()).finish());
  await destination.commit();
  return { ...merged, computed };
}

describe('a merge that is killed', () => {
  let plan: Plan;
  let shards: ShardPlan[];
  let whole: { merged: Merged; files: Map<string, Uint8Array>; steps: number };

  beforeAll(async () => {
    const { safePoint } = ShardWriter.prototype;
    vi.spyOn(ShardWriter.prototype, 'safePoint').mockImplementation(async function (this: ShardWriter) {
      const { bytes, durable } = await safePoint.call(this);
      if (!holdsHashes) return { bytes, durable };
      return { bytes, durable: new Promise((tell) => hashes.push({ hash: durable, tell })) };
    });
    const { recipe } = parseRecipe(RECIPE);
    plan = await makePlan(recipe!, openerOf(...folders), methodById);
    shards = finishShards(plan, new Map());
    const disk = memoryDisk();
    const merged = await attempt(plan, shards, disk);
    whole = { merged, files: filesOf(disk), steps: disk.steps };
    expect(shards.length).toBeGreaterThan(1);
    expect(whole.steps).toBeGreaterThan(60);
  });

  const filesOf = (disk: MemoryDisk) =>
    new Map([...disk.files].filter(([path]) => path !== JOURNAL).map(([path, f]) => [path, f.read()]));

  test('a file beside the shards goes on at the same tensor as they do', async () => {
    const tensors = shards.flatMap((shard) =>
      shard.tensors.map(({ name, byteLength }) => ({ name, byteLength })),
    );
    const header = new TextEncoder().encode('beside');
    const length = tensors.reduce((sum, { byteLength }) => sum + byteLength, header.length);
    const beside: FilePlan = { file: 'beside.gguf', header, tensors, byteLength: length };
    holdsHashes = false;
    const smooth = memoryDisk();
    await attempt(plan, shards, smooth, true, 1, beside);
    expect(smooth.files.get('beside.gguf')!.read()).toHaveLength(length);
    let resumed = 0;
    for (let moment = 12; moment < smooth.steps; moment += 21) {
      for (const continues of [true, false]) {
        const disk = memoryDisk();
        disk.fails = (step) => step >= moment;
        const whole = await attempt(plan, shards, disk, continues, 1, beside).catch((thrown: Error) => {
          if (thrown.message !== 'killed') throw thrown;
        });
        if (whole) continue; // hashes came later, and there were fewer steps
        disk.kill((change) => (change % 3 === 0 ? 'torn' : 'kept'));
        const { computed } = await attempt(plan, shards, disk, continues, 1, beside);
        if (computed < plan.tensors.length) resumed++;
        expect(filesOf(disk)).toEqual(filesOf(smooth));
      }
    }
    expect(resumed).toBeGreaterThan(0);
    holdsHashes = true;
  });

  test('R47: at any step, with what was not flushed lost, kept or torn, it goes on to the same bytes', async () => {
    const fates = fc.array(fc.constantFrom('lost', 'kept', 'torn'), { minLength: 1, maxLength: 7 });
    const kills = fc.array(fc.nat(whole.steps - 1), { minLength: 1, maxLength: 3 });
    const lateness = fc.integer({ min: 1, max: 3 });
    await fc.assert(
      fc.asyncProperty(kills, fates, fc.boolean(), lateness, async (moments, fate, continues, late) => {
        const disk = memoryDisk();
        for (const moment of moments) {
          disk.fails = (step) => step >= moment;
          await attempt(plan, shards, disk, continues, late).catch((thrown: Error) => {
            if (thrown.message !== 'killed') throw thrown;
          });
          if (disk.isCommitted) break;
          disk.kill((change) => fate[change % fate.length] as 'lost' | 'kept' | 'torn');
        }
        const merged = disk.isCommitted ? undefined : await attempt(plan, shards, disk, continues, late);
        expect(disk.isCommitted).toBe(true);
        expect(filesOf(disk)).toEqual(whole.files);
        if (!merged) return;
        expect(merged.shards).toEqual(whole.merged.shards);
        expect(merged.tensors).toEqual(whole.merged.tensors);
      }),
      { numRuns: 30 },
    );
  });

  /** A disk that fails once the journal knows every shard but the last to be whole. */
  function failingBeforeTheLastShard(): MemoryDisk {
    const disk = memoryDisk();
    const journal = () => Buffer.from(disk.files.get(JOURNAL)?.read() ?? []).toString();
    disk.fails = () => journal().split('"whole":true').length === shards.length;
    return disk;
  }

  async function diskWithoutItsLastShard(): Promise<MemoryDisk> {
    const disk = failingBeforeTheLastShard();
    await expect(attempt(plan, shards, disk)).rejects.toThrow('killed');
    disk.kill(() => 'kept');
    return disk;
  }

  test('of finished shards nothing is computed again', async () => {
    const disk = await diskWithoutItsLastShard();
    const merged = await attempt(plan, shards, disk);
    expect(merged.computed).toBe(shards.at(-1)!.tensors.length);
    expect(filesOf(disk)).toEqual(whole.files);
  });

  test('of a shard in the making, what the journal notes is not computed again', async () => {
    const { file, byteLength } = shards[0]!;
    const disk = memoryDisk();
    const journal = () => disk.files.get(JOURNAL)!.read();
    disk.fails = (_, { path }) => path === file && Buffer.from(journal()).includes('"kind":"checkpoint"');
    await expect(attempt(plan, shards, disk)).rejects.toThrow('killed');
    disk.kill(() => 'kept');
    const { safePoints } = (await readJournal(journal()))!;
    const noted = safePoints.flatMap(({ tensors }) => tensors).length;
    expect(noted).toBeGreaterThan(0);
    expect(safePoints.at(-1)!.bytes).toBeLessThan(byteLength);
    const merged = await attempt(plan, shards, disk);
    expect(merged.computed).toBe(shards.flatMap(({ tensors }) => tensors).length - noted);
    expect(filesOf(disk)).toEqual(whole.files);
  });

  test('shards close while the next are written, and the journal knows them in order', async () => {
    const disk = memoryDisk();
    const closed: (() => void)[] = [];
    const closes = shards.map((_, i) => new Promise<void>((resolve) => (closed[i] = resolve)));
    const { open } = disk;
    disk.open = (continues) => {
      const inner = open(continues);
      const create = async (path: string) => {
        const sink = await inner.create(path);
        const index = shards.findIndex((shard) => shard.file === path);
        const close: typeof sink.close = async (leaves, length) => {
          // the last one first
          await closes[index + 1];
          await sink.close(leaves, length);
          closed[index]?.();
        };
        return { ...sink, close };
      };
      return { ...inner, create };
    };
    let journal = '';
    disk.fails = (_, { path }) => {
      if (path === JOURNAL) journal = Buffer.from(disk.files.get(JOURNAL)?.read() ?? []).toString();
      return false;
    };
    await attempt(plan, shards, disk);
    expect(filesOf(disk)).toEqual(whole.files);
    const { safePoints } = (await readJournal(new TextEncoder().encode(journal)))!;
    const noted = safePoints.filter((point) => point.whole).map((point) => point.file);
    expect(noted).toEqual(shards.map((shard) => shard.file).slice(0, noted.length));
    expect(noted.length).toBeGreaterThanOrEqual(shards.length - 1);
  });

  test('R47: a finished shard that changed on the disk is made again', async () => {
    const disk = await diskWithoutItsLastShard();
    disk.files.get(shards[0]!.file)!.rot(5000);
    await attempt(plan, shards, disk);
    expect(filesOf(disk)).toEqual(whole.files);
  });

  test('what was read of an input has to be there again', async () => {
    const pieces = (first: number): HashedPieces =>
      new Map([['a/model.safetensors', new Map([[3, Promise.resolve(new Uint8Array(32).fill(first))]])]]);
    const disk = failingBeforeTheLastShard();
    await expect(attempt(plan, shards, disk, true, 1, undefined, pieces(7))).rejects.toThrow('killed');
    disk.kill(() => 'kept');
    const left = filesOf(disk);
    for (const other of [pieces(8), new Map()]) {
      await expect(attempt(plan, shards, disk, true, 1, undefined, other)).rejects.toMatchObject({
        code: 'RunChanged',
        message: expect.stringContaining('a/model.safetensors has other bytes now'),
      });
    }
    expect(filesOf(disk)).toEqual(left);
    await attempt(plan, shards, disk, true, 1, undefined, pieces(7));
    expect(filesOf(disk)).toEqual(whole.files);
  });

  test('another recipe, another engine or other inputs are refused, and nothing is touched', async () => {
    const disk = await diskWithoutItsLastShard();
    const left = filesOf(disk);

    const other = { ...plan, recipe: { ...plan.recipe, outDtype: 'bfloat16' as const } };
    await expect(attempt(other, shards, disk)).rejects.toMatchObject({ code: 'RunChanged' });
    const changedInput = finishShards(plan, new Map([['a/model.safetensors', 'f'.repeat(64)]]));
    await expect(attempt(plan, changedInput, disk)).rejects.toMatchObject({ code: 'RunChanged' });
    const record = await openRunRecord(disk.open(true), true);
    await expect(record.begin(plan, { kind: 'webgpu', adapter: 'card' })).rejects.toMatchObject({
      code: 'RunChanged',
    });
    expect(filesOf(disk)).toEqual(left);
  });
});
