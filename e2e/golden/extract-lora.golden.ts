/** LoRA extraction from a real fine-tune: errors against the optimal ones, a full-rank adapter against the fine-tune; perplexities. */
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { createCpuBackend } from '../../src/backend/cpu/cpu-backend';
import { runEvaluations } from '../../src/evaluate/job';
import { copyOf } from '../../src/formats/recipe';
import type { OpenModels } from '../../src/host/models';
import { openAdapter } from '../../src/inputs/adapter';
import { openModel } from '../../src/inputs/opened-model';
import { methodById } from '../../src/merge/methods';
import { makePlan } from '../../src/merge/plan/recipe-plan';
import { decompose } from '../../src/merge/tensor/decomposition';
import { residual } from '../../src/merge/tensor/matrix.test.support';
import { matrixOf, readDelta } from '../../src/merge/tensor/panel-products';
import type { EvaluateReport, RunTarget } from '../../src/reports/evaluate';
import { findFile, type ModelFolder } from '../../src/sources/model-folder';
import { deltaMatrix, measurePair, openPair, openPairWorkspace } from '../../src/tools/difference/pair-task';
import { pairTensors } from '../../src/tools/difference/tensor-pairs';
import { ADAPTER, adapterFolder } from '../../src/tools/lora/checks';
import { extractInNode, sidesInNode } from '../compare-in-node';
import { diskFolder } from '../disk-folder';
import { readIds, readText, real } from './reference';

interface Golden {
  tensors: Record<
    string,
    { norm_delta: number; svd?: { singular_values_top16: number[]; rel_error_rank8_optimal: number } }
  >;
}
const golden = JSON.parse(readText(real, 'golden/diff/base_vs_shakespeare_f32.json')) as Golden;

describe('decompositions at rank 8', () => {
  it.each([
    ['exact', 1e-5],
    ['randomized', 0.01],
  ] as const)('%s: within %d of the optimal error', async (way, limit) => {
    const { base, tuned, read } = await sidesInNode(real, 'f32/base', 'f32/shakespeare');
    const { shared } = pairTensors(base, tuned);
    const engine = createCpuBackend();
    const work = openPairWorkspace(engine, shared);
    for (const pair of shared) {
      const { svd: theirs, norm_delta } = golden.tensors[pair.name]!;
      if (!theirs) continue;
      const open = openPair(pair, work, read);
      await measurePair(open, 0);
      const delta = deltaMatrix(open);
      const svd = await decompose(matrixOf(delta), { count: 8, seed: 1, name: pair.name, way });
      const error = residual(await readDelta(delta), svd, 8) / norm_delta;
      const optimal = theirs.rel_error_rank8_optimal;
      expect(Math.abs(error / optimal - 1), pair.name).toBeLessThan(limit);
      for (const [i, s] of theirs.singular_values_top16.slice(0, 8).entries()) {
        // a sketch finds values near the cut less well than the subspace they span
        const apart = Math.abs(svd.s[i]! / s - 1);
        expect(apart, `${pair.name} σ${i + 1}`).toBeLessThan(way === 'exact' ? 1e-5 : 0.05);
      }
      open.close();
    }
  });
});

describe('the fine-tune as an adapter', () => {
  it('of full rank gives the fine-tune again, to f32 rounding', async () => {
    const { report } = await extractInNode(real, 'f32/base', 'f32/shakespeare', {
      rank: { kind: 'rank', rank: 64 },
    });
    expect(report.modules).toHaveLength(35);
    expect(report.left).toEqual([]);
    // weights reach 4, whose last place is 2.4e-7
    expect(report.merged.maxError).toBeLessThan(1e-6);
    expect(report.merged.error).toBeLessThan(1e-5);
  });

  it('of rank 8 comes as near as the optimum of every matrix', async () => {
    const { report } = await extractInNode(real, 'f32/base', 'f32/shakespeare', {
      rank: { kind: 'rank', rank: 8 },
    });
    for (const { module, error } of report.modules) {
      const optimal = golden.tensors[`${module}.weight`]!.svd!.rel_error_rank8_optimal;
      expect(Math.abs(error! / optimal - 1), module).toBeLessThan(1e-5);
    }
  });

  it('a real LoRA is found again: rank 8 of its merged weights', async () => {
    const { report } = await extractInNode(real, 'f32/base', 'f32/base+shakespeare-lora', {
      rank: { kind: 'cutoff', ratio: 1e-3 },
    });
    expect(report.modules.map(({ rank }) => rank)).toEqual(report.modules.map(() => 8));
    expect(report.merged.error).toBeLessThan(1e-5);
  });
});

const { models: expected } = JSON.parse(readText(real, 'expected.json')) as {
  models: Record<string, Record<string, { ppl: number }>>;
};
const ids = readIds(real, 'eval/tinystories.ids.u16');

/** Models on this machine's disk, in place of the worker's. */
function modelsOnDisk(): OpenModels {
  const folders = new Map<string, ModelFolder>();
  const models: Pick<OpenModels, 'open' | 'file'> = {
    async open(path) {
      const folder = folders.get(path) ?? (await diskFolder(path, join(real, path)));
      folders.set(path, folder);
      return openModel(folder, path);
    },
    file: (of, path) => ({ folder: folders.get(of)!, file: findFile(folders.get(of)!, path)! }),
  };
  // the job uses no other method of them
  return models as OpenModels;
}

describe('the perplexity of an extracted adapter', () => {
  it.each([
    ['of full rank is that of the fine-tune', 64, 1e-5],
    ['of rank 1 lies between base and fine-tune', 1, undefined],
  ])('%s', async (_, rank, limit) => {
    vi.stubGlobal('navigator', { hardwareConcurrency: 1 });
    const { file, config } = await extractInNode(real, 'f32/base', 'f32/shakespeare', {
      rank: { kind: 'rank', rank },
    });
    const onDisk = modelsOnDisk();
    const folder = adapterFolder(file, config);
    const models: OpenModels = {
      ...onDisk,
      open: (path) => (path === ADAPTER ? openAdapter(folder, ADAPTER) : onDisk.open(path)),
      file: (of, path) =>
        of === ADAPTER ? { folder, file: findFile(folder, path)! } : onDisk.file(of, path),
    };
    const plan = async (target: RunTarget) => ({
      plan: await makePlan(copyOf((target as { model: string }).model), models.open, methodById),
      exact: true,
    });
    const measured = await runEvaluations(
      {
        targets: ['f32/base', `f32/base+${ADAPTER}`, 'f32/shakespeare'].map((model) => ({ model })),
        inputs: [{ ids }],
        engine: 'cpu',
      },
      { plan, models, signal: new AbortController().signal, onProgress() {} },
    );
    const [base, adapted, finetuned] = measured.models.map(({ outcomes: [outcome] }) => {
      if (outcome && 'report' in outcome) return outcome.report;
      throw new Error(outcome?.error.message);
    }) as [EvaluateReport, EvaluateReport, EvaluateReport];
    const wanted = (name: string) => expected[`${name} (float32 weights)`]!.tinystories!.ppl;
    expect(Math.abs(base.perplexity / wanted('base') - 1)).toBeLessThan(1e-3);
    expect(Math.abs(finetuned.perplexity / wanted('shakespeare') - 1)).toBeLessThan(1e-3);
    if (limit) expect(Math.abs(adapted.perplexity / finetuned.perplexity - 1)).toBeLessThan(limit);
    else {
      expect(adapted.perplexity).toBeGreaterThan(base.perplexity);
      expect(adapted.perplexity).toBeLessThan(finetuned.perplexity);
    }
  });
});
