import { afterAll, expect, test, vi } from 'vitest';
import { calibrateInNode } from '../../e2e/calibrate-in-node';
import { SAMPLES, smallSample } from '../../e2e/disk-folder';
import { mergeInNode, planInNode } from '../../e2e/merge-in-node';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { methods } from '../merge/methods';
import { fakeStorage } from '../store/opfs.test.fake';
import { openPlannedWeights } from './planned-weights';

vi.stubGlobal('navigator', fakeStorage().navigator);
afterAll(() => vi.unstubAllGlobals());

const folders = Object.fromEntries(
  await Promise.all(
    ['base', 'kitchen', 'harbour', 'workshop'].map(
      async (name) =>
        [name, await smallSample(name, `${SAMPLES}/${name}`, { layers: 2, narrower: 4 })] as const,
    ),
  ),
);

const CONTRIBUTORS = ['base+kitchen', 'base+harbour', 'workshop'];
/** What a parameter without a default gets. */
const GIVEN: Readonly<Record<string, number>> = { t: 0.3, weight: 0.7, density: 0.5 };

test.each(methods.filter(({ id }) => id !== 'passthrough').map((method) => [method.id, method] as const))(
  '%s: what runs in memory are the bytes that a merge writes',
  async (id, method) => {
    const models = CONTRIBUTORS.slice(0, method.models.max);
    const given = Object.keys(method.parameters)
      .filter((name) => name in GIVEN)
      .map((name) => `${name}: ${GIVEN[name]}`);
    const recipe = `merge_method: ${id}
base_model: base
models: [${models.map((model) => `{model: ${model}, parameters: {weight: 0.7}}`).join(', ')}]
parameters: {${given.join(', ')}${id === 'gram' ? 'match: changes' : ''}}
`;
    const { plan, read } = await planInNode(recipe, SAMPLES, folders);
    const calibrated = id === 'gram' ? await calibrateInNode(recipe, { root: SAMPLES, folders }) : undefined;
    const { tensors } = await mergeInNode(recipe, SAMPLES, folders, undefined, calibrated?.prepared);
    const engine = createCpuBackend();
    const weights = await openPlannedWeights(plan, [engine], read, false, calibrated?.prepared);
    expect([...weights.tensors.keys()].sort()).toEqual([...tensors.keys()].sort());
    for (const [name, { bytes }] of tensors) {
      expect(Buffer.from(await weights.read(name, 0, bytes.length)).equals(Buffer.from(bytes)), name).toBe(
        true,
      );
    }
    weights.close();
    engine.close();
  },
);
