/** Named semantics, exact quantiles and random draws on a real model: what the recipes of mergekit cannot express. */
import { describe, expect, it } from 'vitest';
import { largestDifference, mergeInNode, type Tensors } from '../merge-in-node';
import { readFile, readText, real } from './reference';

const F32 = {
  base: 'f32/base',
  shakespeare: 'f32/shakespeare',
  wiki: 'f32/wiki',
  'shakespeare-lora': 'shakespeare-lora',
};
const expected = JSON.parse(readText(real, 'expected.json')) as {
  references: Record<string, { models: { threshold: number; kept: number; total: number }[] }>;
};
const base = readFile(real, 'f32/base/model.safetensors');

function ties(models: string[], parameters: string): string {
  return `merge_method: ties\nbase_model: base\nmodels:\n${models
    .map((model) => `  - ${model}`)
    .join('\n')}\nparameters: {${parameters}}\ndtype: float32\n`;
}

function expectClose(tensors: Tensors, stored: Tensors, limit: number): void {
  for (const [key, { values }] of stored) {
    expect(largestDifference(tensors.get(key)!.values, values).absolute, key).toBeLessThanOrEqual(limit);
  }
}

describe('TIES of the paper: one threshold for the whole model', () => {
  it.each([
    ['ties_global_k20', ['shakespeare', 'wiki'], 0.2, 1],
    ['ties_global_k10_3models_lambda15', ['shakespeare', 'wiki', 'base+shakespeare-lora'], 0.1, 1.5],
  ])('%s', async (name, models, density, lambda) => {
    const text = ties(
      models.map((model) => `{model: ${model}, parameters: {weight: 1, density: ${density}}}`),
      `semantics: paper, lambda: ${lambda}`,
    );
    const runs = await Promise.all([8192, 65_536].map((tile) => mergeInNode(text, real, F32, tile)));
    expect(runs[0]!.shards).toEqual(runs[1]!.shards);
    const [{ tensors, reports }] = runs as [(typeof runs)[0], (typeof runs)[0]];
    expectClose(tensors, readFile(real, `golden/reference/${name}.safetensors`), 1e-6);
    for (const [i, { threshold, kept, total }] of expected.references[name]!.models.entries()) {
      const own = reports.map((r) => r.contributors[i]!);
      expect(reports.reduce((sum, r) => sum + r.elements, 0)).toBe(total);
      expect(own.reduce((sum, c) => sum + c.kept, 0)).toBe(kept);
      for (const c of own) expect(Math.abs(c.threshold - threshold)).toBeLessThan(1e-7);
    }
  });
});

describe('TIES of PEFT: unweighted election, division by the count', () => {
  it.each([
    ['ties_count_total', 'total'],
    ['ties_count_frequency', 'frequency'],
  ])('%s', async (name, majority) => {
    const text = ties(
      [
        '{model: shakespeare, parameters: {weight: 0.7, density: 0.3}}',
        '{model: wiki, parameters: {weight: 0.5, density: 0.3}}',
        '{model: base+shakespeare-lora, parameters: {weight: 0.4, density: 0.3}}',
      ],
      `semantics: peft, majority_sign_method: ${majority}`,
    );
    const { tensors } = await mergeInNode(text, real, F32);
    expectClose(tensors, readFile(real, `golden/reference/${name}.safetensors`), 1e-6);
  });
});

describe('where mergekit is not exact', () => {
  it('arcee_fusion: elements on the other side of the threshold are those its README names, and few', async () => {
    const { tensors } = await mergeInNode(readText(real, 'golden/merge/arcee_fusion.yml'), real, F32);
    const tuned = readFile(real, 'f32/shakespeare/model.safetensors');
    let otherSide = 0;
    for (const [key, stored] of readFile(real, 'golden/merge/arcee_fusion.safetensors')) {
      const ours = tensors.get(key)!.values;
      stored.values.forEach((v, e) => {
        if (Math.abs(ours[e]! - v) <= 1e-6) return;
        otherSide++;
        const pair = [base.get(key)!.values[e]!, tuned.get(key)!.values[e]!];
        expect(pair.map((w) => Math.abs(w - ours[e]!) <= 1e-6)).toContain(true);
        expect(pair.map((w) => Math.abs(w - v) <= 1e-6)).toContain(true);
      });
    }
    expect(otherSide).toBeLessThanOrEqual(27);
  });

  it('breadcrumbs_ties with ⌊γn⌋ = 0 keeps small tensors; elsewhere only equal magnitudes at the cut differ', async () => {
    const text = readText(real, 'golden/merge/breadcrumbs_ties_gamma001.yml');
    const { tensors, reports } = await mergeInNode(text, real, F32, 8192);
    let different = 0;
    for (const [key, stored] of readFile(real, 'golden/merge/breadcrumbs_ties_gamma001.safetensors')) {
      if (stored.values.length < 100) {
        expect(stored.values).toEqual(base.get(key)!.values);
        expect(tensors.get(key)!.values).not.toEqual(stored.values);
      } else
        stored.values.forEach((v, e) => {
          if (Math.abs(tensors.get(key)!.values[e]! - v) > 1e-6) different++;
        });
    }
    expect(different).toBeLessThanOrEqual(2);
    for (const { elements, contributors } of reports) {
      for (const { kept } of contributors) expect(kept).toBe(Math.floor(0.6 * elements));
    }
  });
});

describe('DELLA by its invariants', () => {
  it.each(['stats_della', 'stats_della_linear'])('%s', async (name) => {
    const { tensors, reports } = await mergeInNode(
      readText(real, `golden/stats/${name}.yml`),
      real,
      F32,
      8192,
    );
    const tuned = readFile(real, 'f32/shakespeare/model.safetensors');
    const statistics = JSON.parse(readText(real, `golden/stats/${name}.json`)) as {
      tensors: Record<string, { numel: number; rescale_factor_l1_ratio: number }>;
    };
    for (const { name: key, elements, contributors } of reports) {
      const tau = tuned.get(key)!.values.map((w, e) => w - base.get(key)!.values[e]!);
      const change = tensors.get(key)!.values.map((w, e) => w - base.get(key)!.values[e]!);
      const l1 = (keep: (e: number) => boolean) =>
        tau.reduce((s, t, e) => s + (keep(e) ? Math.abs(t) : 0), 0);
      const factor = l1(() => true) / l1((e) => change[e] !== 0);
      change.forEach((c, e) => {
        if (c !== 0) expect(Math.abs(c - tau[e]! * factor)).toBeLessThan(3e-6);
      });
      expect(elements).toBe(statistics.tensors[key]!.numel);
      expect(Math.abs(contributors[0]!.kept - 0.4 * elements)).toBeLessThan(4 * Math.sqrt(0.24 * elements));
      // large changes are kept more often, so the factor is below 1 / density, as it is in one draw of mergekit's
      const theirs = statistics.tensors[key]!.rescale_factor_l1_ratio;
      expect(Math.abs(factor / theirs - 1)).toBeLessThan(8 / Math.sqrt(elements));
    }
  });
});
