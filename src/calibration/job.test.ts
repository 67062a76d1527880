import { join } from 'node:path';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { calibrateInNode, type NodeModels } from '../../e2e/calibrate-in-node';
import { SAMPLES, smallSample } from '../../e2e/disk-folder';
import { deleteMasks, listMasks } from '../store/masks';
import { fakeStorage } from '../store/opfs.test.fake';
import { farthest } from './mathematics.test.support';

const SIZE_OF_MODELS = { layers: 2, narrower: 4 };
const small = (name: string) => smallSample(name, join(SAMPLES, name), SIZE_OF_MODELS);
const models: NodeModels = {
  root: SAMPLES,
  folders: {
    base: await small('base'),
    kitchen: await small('kitchen'),
    again: await small('kitchen'),
    workshop: await small('workshop'),
  },
  texts: { 'short.txt': 'Recipe: soup. '.repeat(100) },
};

const SIZE = 'calibration_windows: 2, calibration_window: 24';

function recipe(method: string, parameters: string, names: readonly string[], own = 'density: 1'): string {
  const weight = method === 'gram' ? '' : 'weight: 1, ';
  const list = names.map((name) => `  - {model: ${name}, parameters: {${weight}${own}}}\n`).join('');
  return `merge_method: ${method}\nbase_model: base\nmodels:\n${list}parameters: {${SIZE}, ${parameters}}\n`;
}

const Q = 'model.layers.0.self_attn.q_proj.weight';
const LAST = 'model.layers.1.self_attn.o_proj.weight';
const ELEMENTS = 32 * 32;
/** Linear layers of a model. */
const LINEAR = 7 * SIZE_OF_MODELS.layers;

beforeEach(() => {
  vi.stubGlobal('navigator', fakeStorage().navigator);
});

describe('a Gram merge', () => {
  test('is worked out once: the second time no model is run, and the bytes are the same', async () => {
    const text = recipe('gram', 'lambda: 1', ['base+kitchen', 'workshop']);
    const first = await calibrateInNode(text, models);
    const second = await calibrateInNode(text, models);
    const [a, b] = [first.report.importance!, second.report.importance!];
    expect([a.computed, a.reused, b.computed, b.reused]).toEqual([LINEAR, 0, 0, LINEAR]);
    expect(a.contributors.map((c) => [c.writtenTokens, c.forwardTokens])).toEqual([
      [48, 48],
      [48, 48],
    ]);
    expect(b.contributors.map((c) => [c.writtenTokens, c.forwardTokens])).toEqual([
      [0, 0],
      [0, 0],
    ]);
    expect(b.peakBytes).toBe(0);
    expect(a.peakBytes).toBeGreaterThan(0);
    expect(await second.prepared!.solution(Q)!.values(0, ELEMENTS)).toEqual(
      await first.prepared!.solution(Q)!.values(0, ELEMENTS),
    );
    // rows of the embedding are weighed by tokens; the weights of a row add up to 1
    const weights = first.prepared!.rowWeights('model.embed_tokens.weight')!;
    expect(second.prepared!.rowWeights('model.embed_tokens.weight')).toEqual(weights);
    for (const [token, share] of weights[0]!.entries())
      expect(share + weights[1]![token]!).toBeCloseTo(1, 12);
    expect(new Set(weights[0]!).size).toBeGreaterThan(5);
    expect(first.prepared!.rowWeights('model.norm.weight')).toBeUndefined();
  });

  test('goes on where it was cut off: only what is missing is computed', async () => {
    const text = recipe('gram', 'lambda: 1', ['base+kitchen']);
    const storage = fakeStorage();
    vi.stubGlobal('navigator', storage.navigator);
    storage.failAt = 100;
    await expect(calibrateInNode(text, models)).rejects.toThrow();
    storage.powerCut(() => 'torn');
    const { report } = await calibrateInNode(text, models);
    expect(report.importance!.reused).toBeGreaterThan(0);
    expect(report.importance!.computed).toBeGreaterThan(0);
    expect(report.importance!.computed + report.importance!.reused).toBe(LINEAR);
  });

  test('of one model is that model, and of a model with itself too', async () => {
    const single = await calibrateInNode(recipe('gram', 'lambda: 1', ['base+kitchen']), models);
    const twice = await calibrateInNode(recipe('gram', 'lambda: 1', ['base+kitchen', 'base+again']), models);
    const [one] = await Promise.all([single.prepared!.solution(Q)!.values(0, ELEMENTS)]);
    const norm = single.prepared!.solution(Q)!.contributors[0]!.norm;
    expect(Math.hypot(...one)).toBeCloseTo(norm, 3);
    expect(await twice.prepared!.solution(Q)!.values(0, ELEMENTS)).toEqual(one);
  });
});

describe('a Gram merge that matches outputs', () => {
  const parameters = 'match: outputs, lambda: 1';
  const text = recipe('gram', parameters, ['base+kitchen', 'workshop']);

  test('is worked out once, for every λ; the second time no model is run; cut off, it goes on at the layer', async () => {
    const first = await calibrateInNode(text, models);
    const other = 'match: outputs, lambda: 1.4';
    const second = await calibrateInNode(recipe('gram', other, ['base+kitchen', 'workshop']), models);
    const [a, b] = [first.report.importance!, second.report.importance!];
    expect([a.computed, a.reused, b.computed, b.reused]).toEqual([LINEAR, 0, 0, LINEAR]);
    expect(b.contributors.map((c) => [c.writtenTokens, c.forwardTokens])).toEqual([
      [0, 0],
      [0, 0],
    ]);
    expect(await second.prepared!.solution(Q)!.values(0, ELEMENTS)).toEqual(
      await first.prepared!.solution(Q)!.values(0, ELEMENTS),
    );

    const wanted = await first.prepared!.solution(LAST)!.values(0, ELEMENTS);
    const storage = fakeStorage();
    vi.stubGlobal('navigator', storage.navigator);
    storage.failAt = 250;
    await expect(calibrateInNode(text, models)).rejects.toThrow();
    storage.powerCut(() => 'torn');
    const { report, prepared } = await calibrateInNode(text, models);
    expect(report.importance!.reused).toBeGreaterThan(0);
    expect(report.importance!.computed).toBeGreaterThan(0);
    expect(await prepared!.solution(LAST)!.values(0, ELEMENTS)).toEqual(wanted);
  });

  test('of one model is that model', async () => {
    const { prepared } = await calibrateInNode(recipe('gram', parameters, ['workshop']), models);
    const changes = await calibrateInNode(recipe('gram', 'match: changes, lambda: 1', ['workshop']), models);
    const [ours, own] = await Promise.all(
      [prepared, changes.prepared].map((p) => p!.solution(LAST)!.values(0, ELEMENTS)),
    );
    const far = ours!.reduce((most, v, e) => Math.max(most, Math.abs(v - own![e]!)), 0);
    expect(far / own!.reduce((most, v) => Math.max(most, Math.abs(v)), 0)).toBeLessThan(1e-4);
  });
});

describe.each(['inputs', 'outputs', 'stream', 'changes', 'inputs, gram: diagonal'])(
  'weights of a Gram merge, match: %s',
  (match) => {
    const settings = `match: ${match}, lambda: 0.9, sum: 0.1`;
    const tensors = [Q, LAST, 'model.embed_tokens.weight', 'model.norm.weight'];
    const valuesOf = async (text: string) => {
      const { tensor } = await calibrateInNode(`${text}out_dtype: float32\n`, models);
      return Promise.all(tensors.map(tensor));
    };
    const weighed = (weight: string) =>
      recipe('gram', settings, ['base+kitchen', 'workshop']).replace('{density: 1}', `{weight: ${weight}}`);

    test('2 is as if the model were listed twice; the same for all changes nothing without a sum', async () => {
      const plain = await valuesOf(recipe('gram', settings, ['base+kitchen', 'workshop']));
      const listed = await valuesOf(recipe('gram', settings, ['base+kitchen', 'base+again', 'workshop']));
      const twice = await valuesOf(weighed('2'));
      for (const [i, values] of twice.entries()) {
        expect(farthest(values, listed[i]!)).toBeLessThan(1e-5);
        expect(farthest(values, plain[i]!)).toBeGreaterThan(1e-4);
      }
      const alike = (text: string) => text.replace(', sum: 0.1', '').replace(SIZE, `${SIZE}, weight: 3`);
      const text = recipe('gram', settings, ['base+kitchen', 'workshop']);
      expect(await valuesOf(alike(text))).toEqual(await valuesOf(alike(text).replace(', weight: 3', '')));
    });

    test('a filter weighs the tensors that it names', async () => {
      const [inFilter, , outside] = await valuesOf(weighed('[{filter: q_proj, value: 2}, {value: 1}]'));
      const [without, , once] = await valuesOf(weighed('1'));
      expect(farthest(inFilter!, without!)).toBeGreaterThan(1e-4);
      // elsewhere a layer hangs on what stands before it
      const [twice] = await valuesOf(weighed('2'));
      if (match !== 'outputs' && match !== 'stream') expect(inFilter).toEqual(twice);
      expect(outside).toEqual(once);
    });
  },
);

test('a Gram merge of the changes runs no model', async () => {
  const { report } = await calibrateInNode(
    recipe('gram', 'match: changes, lambda: 1', ['base+kitchen', 'workshop']),
    models,
  );
  expect(report.importance).toMatchObject({ computed: LINEAR, reused: 0 });
  expect(report.importance!.contributors.map((c) => [c.writtenTokens, c.forwardTokens])).toEqual([
    [0, 0],
    [0, 0],
  ]);
});

describe('importance in a pipeline method', () => {
  test.each(['off', 'cg'])('keeps ⌊ρn⌋ entries of linear layers, once (compensation %s)', async (how) => {
    // the first block only
    const own = 'density: [{filter: layers.0., value: 0.2}, {value: 1}]';
    const text = recipe('ties', `selector: importance, compensation: ${how}`, ['workshop'], own);
    const first = await calibrateInNode(text, models);
    const second = await calibrateInNode(text, models);
    expect(first.report.importance!.computed).toBe(7);
    expect(second.report.importance).toMatchObject({ computed: 0, reused: 7 });
    const [a, b] = [first, second].map(({ prepared }) => prepared!.selection(Q, 'workshop')!);
    expect(a!.kept).toBe(Math.floor(0.2 * ELEMENTS));
    expect(a!.kind).toBe(how === 'off' ? 'mask' : 'values');
    if (a!.kind === 'mask' && b!.kind === 'mask') {
      expect(await b!.mask(256, 512)).toEqual(await a!.mask(256, 512));
    }
    if (a!.kind === 'values' && b!.kind === 'values') {
      const values = await a!.values(0, ELEMENTS);
      expect(values.filter((v) => v !== 0)).toHaveLength(a!.kept);
      // in two pieces, and in another order
      expect(await b!.values(256, ELEMENTS)).toEqual(values.slice(256));
      expect(await b!.values(0, 256)).toEqual(values.slice(0, 256));
    }
    expect(first.prepared!.selection('model.embed_tokens.weight', 'workshop')).toBeUndefined();
  });

  test('masks of two densities share what the models read, and are listed and deleted', async () => {
    // the first block only
    const at = (density: number) =>
      calibrateInNode(
        recipe(
          'task_arithmetic',
          'selector: importance, compensation: off',
          ['base+kitchen'],
          `density: [{filter: layers.0., value: ${density}}, {value: 1}]`,
        ),
        models,
      );
    await at(0.2);
    const { report } = await at(0.5);
    expect(report.importance!.contributors[0]).toMatchObject({ writtenTokens: 0, forwardTokens: 48 });
    const listed = await listMasks();
    expect(listed.map((m) => m.title).sort()).toEqual([
      'base+kitchen: importance on text it wrote itself (seed 0), 2 × 24 tokens',
      'base+kitchen: text it wrote itself (seed 0), 2 × 24 tokens',
    ]);
    for (const { id } of listed) await deleteMasks(id);
    expect((await at(0.5)).report.importance!.contributors[0]!.writtenTokens).toBe(48);
  });

  test('another text is another calibration', async () => {
    const FIRST_BLOCK = 'density: [{filter: layers.0., value: 0.3}, {value: 1}]';
    const own = await calibrateInNode(
      recipe('task_arithmetic', 'selector: importance, compensation: off', ['base+kitchen'], FIRST_BLOCK),
      models,
    );
    const given = await calibrateInNode(
      recipe(
        'task_arithmetic',
        'selector: importance',
        ['base+kitchen'],
        `${FIRST_BLOCK}, calibration: short.txt`,
      ),
      models,
    );
    expect(given.report.importance!.computed).toBe(7);
    expect(given.report.importance!.contributors[0]!.calibrationSha256).not.toBe(
      own.report.importance!.contributors[0]!.calibrationSha256,
    );
  });
});

describe('lambda: auto', () => {
  test('is found once, stands in the recipe, and 1 is among what was tried', async () => {
    const text = recipe('task_arithmetic', 'lambda: auto', ['base+kitchen', 'workshop']);
    const first = await calibrateInNode(text, models);
    const second = await calibrateInNode(text, models);
    const { chosen, curve, reused } = first.report.lambda!;
    expect(reused).toBe(false);
    expect(second.report.lambda).toMatchObject({ reused: true, chosen, curve });
    expect(first.plan.recipe.parameters.lambda).toBe(chosen);
    const yaml = first.plan.extras.find((e) => e.path === 'mergekit_config.yml')!.content;
    expect('text' in yaml && yaml.text).toContain(`lambda: ${chosen}`);
    expect(curve.map((p) => p.lambda)).toContain(1);
    const best = curve.reduce((a, b) => (b.perplexity < a.perplexity ? b : a));
    expect(best.lambda).toBe(chosen);
  });

  test('is judged on text that is written along with the calibration, the same as when it is written alone', async () => {
    const arithmetic = recipe('task_arithmetic', 'lambda: auto', ['base+kitchen']);
    const alone = await calibrateInNode(arithmetic, models);
    vi.stubGlobal('navigator', fakeStorage().navigator);
    const gram = await calibrateInNode(recipe('gram', 'lambda: auto', ['base+kitchen']), models);
    // 2 windows of 24 tokens to calibrate, 8 for λ
    expect(gram.report.importance!.contributors[0]!.writtenTokens).toBe(10 * 24);
    const along = await calibrateInNode(arithmetic, models);
    expect(along.report.lambda!.reused).toBe(false);
    expect(along.report.lambda!.curve).toEqual(alone.report.lambda!.curve);
  });
});
