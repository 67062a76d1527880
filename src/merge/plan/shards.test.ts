import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { headerLength, parseSafetensorsHeader } from '../../formats/safetensors-header';
import { openerOf, recipeOf, tinyModel } from '../../inputs/memory-models.test.support';
import { methodById } from '../methods';
import { planReport } from './plan-report';
import { makePlan } from './recipe-plan';
import { finishShards, planShards } from './shards';

const f32 = (name: string, elements: number) => ({ name, dtype: 'F32' as const, shape: [elements] });

describe('planShards', () => {
  it('fills one file after the other and numbers them', () => {
    const shards = planShards([f32('a', 2), f32('b', 1), f32('c', 9), f32('d', 1)], {}, 12);
    expect(shards.map((s) => [s.file, s.tensors.map((t) => t.name)])).toEqual([
      ['model-00001-of-00003.safetensors', ['a', 'b']],
      ['model-00002-of-00003.safetensors', ['c']],
      ['model-00003-of-00003.safetensors', ['d']],
    ]);
  });

  it('loses and repeats nothing, keeps to the limit, and writes headers that a strict reader takes', () => {
    const tensors = fc.array(
      fc.record({
        dtype: fc.constantFrom('F32', 'BF16', 'U8'),
        shape: fc.array(fc.nat(5), { maxLength: 3 }),
      }),
      {
        minLength: 1,
        maxLength: 20,
      },
    );
    fc.assert(
      fc.property(tensors, fc.integer({ min: 1, max: 200 }), (list, limit) => {
        const named = list.map((t, i) => ({ name: `t${i}`, dtype: t.dtype as 'F32', shape: t.shape }));
        const shards = planShards(named, { format: 'pt' }, limit);
        expect(shards.flatMap((s) => s.tensors.map((t) => t.name)).sort()).toEqual(
          named.map((t) => t.name).sort(),
        );
        for (const { header, tensors: inFile, byteLength } of shards) {
          const data = inFile.reduce((sum, t) => sum + t.byteLength, 0);
          expect(header.length + data).toBe(byteLength);
          expect(data <= limit || inFile.filter((t) => t.byteLength > 0).length === 1).toBe(true);
          const json = header.subarray(8, 8 + headerLength(header.subarray(0, 8), byteLength));
          const parsed = parseSafetensorsHeader(json, byteLength, 'shard');
          expect([...parsed.tensors.keys()].sort()).toEqual(inFile.map((t) => t.name).sort());
        }
      }),
    );
  });
});

describe('finishShards', () => {
  it('writes recipe, version and the known hashes into every shard', async () => {
    const recipe = recipeOf(['tuned'], { amalgam: { shardBytes: 200 } });
    const plan = await makePlan(recipe, openerOf(tinyModel('base'), tinyModel('tuned')), methodById);
    expect(plan.shards.length).toBeGreaterThan(1);
    expect(planReport(plan).outputFiles.at(-1)).toBe('model.safetensors.index.json');
    const shards = finishShards(
      plan,
      new Map([
        ['tuned/model.safetensors', 'ab'],
        ['other', 'cd'],
      ]),
    );
    expect(shards.map((s) => s.tensors)).toEqual(plan.shards.map((s) => s.tensors));
    for (const { header, byteLength } of shards) {
      const { metadata } = parseSafetensorsHeader(header.subarray(8), byteLength, 'shard');
      expect([...metadata.keys()].sort()).toEqual([
        'amalgam_inputs',
        'amalgam_recipe',
        'amalgam_version',
        'format',
      ]);
      expect(metadata.get('amalgam_inputs')).toBe('{"tuned/model.safetensors":"ab"}');
      expect(metadata.get('amalgam_recipe')).toContain('merge_method: task_arithmetic');
      expect(metadata.get('amalgam_version')).toMatch(/^\d+\.\d+\.\d+$/);
    }
  });
});
