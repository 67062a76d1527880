/** A merge whose device fails in the middle gives the bytes of one whose device did not. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { goldenFolder } from '../../../e2e/goldens';
import type { Backend } from '../../backend/backend';
import { createCpuBackend } from '../../backend/cpu/cpu-backend';
import { AmalgamError, type ErrorCode } from '../../errors';
import { parseRecipe } from '../../formats/recipe-yaml';
import { memoryFolder, openerOf } from '../../inputs/memory-models.test.support';
import { methodById } from '../methods';
import type { Plan } from '../plan/plan';
import { makePlan } from '../plan/recipe-plan';
import { finishShards } from '../plan/shards';
import { runPlan } from './run';

const golden = goldenFolder('mergekit');
const folders = ['base', 'a', 'b', 'c'].map((name) =>
  memoryFolder(name, {
    'config.json': readFileSync(join(golden, 'config.json'), 'utf8'),
    'model.safetensors': Uint8Array.from(readFileSync(join(golden, `in_${name}.safetensors`))),
  }),
);

/** An engine that fails at the given reads, after which nothing works on it any more. */
function failing(engine: Backend, at: (read: number) => ErrorCode | undefined, counter: { reads: number }) {
  let dead: ErrorCode | undefined;
  const fail = (code: ErrorCode): never => {
    throw new AmalgamError(code, 'It failed.', 'Do this.');
  };
  return new Proxy(engine, {
    get(target, key) {
      if (key === 'read') {
        return async (ranges: Parameters<Backend['read']>[0]) => {
          dead ??= at(counter.reads++);
          return dead ? fail(dead) : target.read(ranges);
        };
      }
      const member = target[key as keyof Backend];
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
}

async function merged(plan: Plan, failAt: ReadonlyMap<number, ErrorCode>, tileElements: number) {
  const counter = { reads: 0 };
  const engine = () => failing(createCpuBackend(), (read) => failAt.get(read), counter);
  const files: Uint8Array[] = [];
  let recovered = 0;
  const { tensors } = await runPlan({
    plan,
    shards: finishShards(plan, new Map()),
    engine: engine(),
    methods: methodById,
    tileElements,
    read: async (ref, begin, end) => {
      const folder = folders.find(({ path }) => path === ref.folder)!;
      return folder.files
        .find(({ path }) => path === ref.file)!
        .open()
        .read(ref.begin + begin, ref.begin + end);
    },
    openShard: async (shard) => {
      const pieces: Uint8Array[] = [shard.header];
      return {
        write: async (bytes) => void pieces.push(bytes.slice()),
        finish: async () => files.push(Buffer.concat(pieces)),
        abort() {},
      };
    },
    recover: async (failure, tile) => {
      if (!(failure instanceof AmalgamError)) throw failure;
      recovered++;
      return { engine: engine(), tileElements: Math.max(4096, tile / 2) };
    },
  });
  return { files, tensors, reads: counter.reads, recovered };
}

const TILE = 16_384;

test.each(['ties', 'dare_ties_seed7', 'slerp', 'karcher'])('R41 R45: %s', (name) => check(name), 60_000);

async function check(name: string): Promise<void> {
  const { recipe } = parseRecipe(readFileSync(join(golden, `${name}.yml`), 'utf8'));
  const plan = await makePlan(recipe!, openerOf(...folders), methodById);
  const whole = await merged(plan, new Map(), TILE);
  const codes = fc.constantFrom<ErrorCode>('GpuLost', 'GpuOutOfMemory', 'GpuUnverified');
  const faults = fc.array(fc.tuple(fc.nat(whole.reads - 1), codes), { minLength: 1, maxLength: 3 });
  await fc.assert(
    fc.asyncProperty(faults, async (list) => {
      const again = await merged(plan, new Map(list), TILE);
      expect(again.recovered).toBeGreaterThan(0);
      expect(again.files).toEqual(whole.files);
      expect(again.tensors.map(({ name: n }) => n)).toEqual(whole.tensors.map(({ name: n }) => n));
    }),
    { numRuns: 6 },
  );
}
