import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { erf } from '../backend/special';
import { resolveArchitecture } from '../models/resolution';
import {
  deviation,
  GOLDEN_NAMES,
  type Golden,
  goldenWeights,
  loadGolden,
  values,
} from './golden.test.fixture';
import { runOracle } from './oracle';

const goldens = new Map<string, Golden>();
for (const name of GOLDEN_NAMES) {
  goldens.set(name, await loadGolden(name, async (path) => new Uint8Array(readFileSync(path))));
}

describe('the f64 oracle', () => {
  it.each(GOLDEN_NAMES)('%s: logits within 1e-9, stream within f32 of the reference', (name) => {
    const golden = goldens.get(name)!;
    const architecture = resolveArchitecture(golden.config);
    if (golden.legacyConfig) expect(resolveArchitecture(golden.legacyConfig)).toEqual(architecture);
    const { logits, residuals } = runOracle(
      architecture,
      goldenWeights(architecture, golden.weights),
      golden.ids,
    );
    const wanted = values(golden.golden.get('logits_f64')!);
    const worst = logits
      .flatMap((row) => [...row])
      .reduce((m, v, i) => Math.max(m, Math.abs(v - wanted[i]!)), 0);
    expect(worst).toBeLessThan(golden.info.tolerances.f64_oracle.logits_f64_max_abs);
    for (const [i, rows] of residuals.entries()) {
      const { relRms } = deviation(
        rows.flatMap((row) => [...row]),
        values(golden.golden.get(`resid.${i}`)!),
      );
      expect(relRms, `resid.${i}`).toBeLessThan(2e-6);
    }
    expect(residuals.length).toBe(architecture.blocks.length + 1);
  });

  it('erf agrees with tabulated values (Abramowitz and Stegun, table 7.1)', () => {
    expect(erf(0)).toBe(0);
    expect(erf(0.5)).toBeCloseTo(0.5204998778, 10);
    expect(erf(1)).toBeCloseTo(0.8427007929, 10);
    expect(erf(-2)).toBeCloseTo(-0.995322265, 9);
    expect(erf(3.5)).toBeCloseTo(0.999999257, 9);
    expect(erf(3 - 1e-12)).toBeCloseTo(erf(3 + 1e-12), 11);
  });
});
