import { join } from 'node:path';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { calibrateInNode, type NodeMerge, type NodeModels } from '../../e2e/calibrate-in-node';
import { SAMPLES, smallSample } from '../../e2e/disk-folder';
import { parseModelConfig } from '../formats/model-config';
import { runOracle } from '../forward/oracle';
import { expectedTensors } from '../models/claim';
import { resolveArchitecture } from '../models/resolution';
import { fakeStorage } from '../store/opfs.test.fake';
import { farthest, normals } from './mathematics.test.support';
import { matchedOutputsOracle } from './oracle.test.support';

const small = (name: string) => smallSample(name, join(SAMPLES, name), { layers: 2, narrower: 4 });
const [WINDOWS, LENGTH] = [2, 24];
const ids = (seed: number) =>
  Array.from(normals(WINDOWS * LENGTH, seed), (v) => Math.abs(Math.round(v * 1e4)) % 1024);
const names = ['base+kitchen', 'workshop'];
const base = await small('base');
const config = base.files.find(({ path }) => path === 'config.json')!;
const architecture = resolveArchitecture(
  parseModelConfig(new TextDecoder().decode(await config.open().read(0, config.byteLength)), 'config'),
);
const models: NodeModels = {
  root: SAMPLES,
  folders: { base, kitchen: await small('kitchen'), workshop: await small('workshop') },
  texts: { 'base+kitchen': ids(1), workshop: ids(2) },
};

describe('a Gram merge that matches outputs and the stream, against the forward pass and the closed form in f64', () => {
  let merged: NodeMerge;
  let own: NodeMerge[];
  const list = names.map((name) => `  - {model: ${name}, parameters: {calibration: ${name}}}\n`).join('');
  const size = `calibration_windows: ${WINDOWS}, calibration_window: ${LENGTH}`;

  const matched = (parameters: string, match = 'stream') =>
    calibrateInNode(
      `merge_method: gram\nbase_model: base\nmodels:\n${list}parameters: {match: ${match}, lambda: 1, ${size}${parameters}}\nout_dtype: float32\n`,
      models,
    );

  beforeAll(async () => {
    vi.stubGlobal('navigator', fakeStorage().navigator);
    merged = await matched('');
    own = await Promise.all(
      names.map((name) =>
        calibrateInNode(
          `merge_method: gram\nbase_model: base\nmodels: [{model: ${name}}]\nparameters: {match: changes}\nout_dtype: float32\n`,
          models,
        ),
      ),
    );
  });

  async function weightsOf(merge: NodeMerge) {
    const all = new Map<string, Float64Array<ArrayBuffer>>();
    for (const { name } of expectedTensors(architecture)) {
      all.set(name, Float64Array.from(await merge.tensor(name)));
    }
    return all;
  }

  test.each(['self_attn.o_proj', 'mlp.down_proj', 'mlp.up_proj'])('%s of the second layer', async (layer) => {
    const name = `model.layers.1.${layer}.weight`;
    const before = 'model.layers.1.self_attn.o_proj.weight';
    const ours = await weightsOf(merged);
    const parts = await Promise.all(
      own.map(async (model, i) => {
        const weights = await weightsOf(model);
        const text = models.texts![names[i]!] as readonly number[];
        const rows = [ours, weights].map((of) =>
          Array.from({ length: WINDOWS }, (_, w) => {
            const part = text.slice(w * LENGTH, (w + 1) * LENGTH);
            const { residuals, inputs } = runOracle(architecture, (tensor) => of.get(tensor)!, part);
            const attended = inputs.get(before)!.map((x) => times(of.get(before)!, x));
            const stream = residuals[1]!.map((row, t) =>
              layer.startsWith('mlp') ? row.map((v, j) => v + attended[t]![j]!) : row,
            );
            return { inputs: inputs.get(name)!, stream };
          }),
        );
        const flat = (which: number, of: 'inputs' | 'stream') => rows[which]!.flatMap((window) => window[of]);
        const [now, stood] = [flat(0, 'stream'), flat(1, 'stream')];
        return {
          weight: weights.get(name)!,
          merged: flat(0, 'inputs').flatMap((row) => [...row]),
          own: flat(1, 'inputs').flatMap((row) => [...row]),
          lacking: (r: number) => stood.map((row, t) => row[r]! - now[t]![r]!),
        };
      }),
    );
    const width = parts[0]!.merged.length / (WINDOWS * LENGTH);
    const wanted = ours.get(name)!.map(() => 0);
    for (let r = 0; r < wanted.length / width; r++) {
      const terms = parts.map(({ weight, merged: now, own: stood, lacking }) => ({
        ...{ merged: now, own: stood, row: weight.subarray(r * width, (r + 1) * width) },
        ...(layer !== 'mlp.up_proj' && { more: lacking(r) }),
      }));
      wanted.set(matchedOutputsOracle(terms, width), r * width);
    }
    const start = Float64Array.from(await baseOf(name));
    const change = (of: Float64Array) => of.map((v, e) => v - start[e]!);
    expect(farthest(change(ours.get(name)!), change(wanted))).toBeLessThan(1e-4);
  });

  test.each(['self_attn.o_proj', 'mlp.down_proj', 'input_layernorm'])(
    '%s with a share of the sum of the changes on top',
    async (layer) => {
      const name = `model.layers.1.${layer}.weight`;
      const start = await baseOf(name);
      const alone = await merged.tensor(name);
      const all = await Promise.all(own.map((model) => model.tensor(name)));
      const wanted = alone.map((v, e) => v + all.reduce((sum, of) => sum + 0.2 * (of[e]! - start[e]!), 0));
      const more = await matched(', sum: 0.2');
      expect(more.report.importance).toMatchObject({ computed: 0 });
      expect(farthest(await more.tensor(name), wanted)).toBeLessThan(1e-6);
    },
  );

  test.each(['self_attn.o_proj', 'mlp.down_proj', 'input_layernorm'])(
    'both: %s halfway between what the inputs and the stream ask for',
    async (layer) => {
      const name = `model.layers.1.${layer}.weight`;
      const stream = await merged.tensor(name);
      const inputs = await (await matched('', 'inputs')).tensor(name);
      const both = await matched('', 'both');
      expect(both.report.importance).toMatchObject({ computed: 0 });
      const wanted = inputs.map((v, e) => (v + stream[e]!) / 2);
      expect(farthest(await both.tensor(name), wanted)).toBeLessThan(1e-6);
    },
  );

  /** The tensor of the base. */
  async function baseOf(name: string) {
    const only = await calibrateInNode(
      'merge_method: linear\nmodels: [{model: base, parameters: {weight: 1}}]\nout_dtype: float32\n',
      models,
    );
    return only.tensor(name);
  }
});

/** W·x. */
function times(weight: Float64Array, x: Float64Array): Float64Array {
  return Float64Array.from({ length: weight.length / x.length }, (_, r) =>
    x.reduce((sum, v, j) => sum + v * weight[r * x.length + j]!, 0),
  );
}
