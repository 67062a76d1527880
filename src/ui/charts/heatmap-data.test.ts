import { describe, expect, test } from 'vitest';
import { NBSP } from '../../formats/quantity';
import type { TensorReport } from '../../reports/job';
import {
  cellText,
  differenceOf,
  extremeValues,
  heatmap,
  layerGrid,
  moduleLabels,
  rowLabel,
  rowWords,
} from './heatmap-data';
import { differenceIn, keptEnergy, type Measured, mean, valueText } from './measured';
import { differenceMetric } from './metric-choice';
import { metricById } from './metrics';

const tensor = (layer: number | null, module: string, name = `l${layer}.${module}.weight`) => ({
  name,
  layer,
  module,
  copied: false,
});

/** A report of a tensor with one changing contributor `a` and one, `b`, that leaves it alone. */
function report(t: ReturnType<typeof tensor>, kept: number, elements: number): TensorReport {
  return {
    ...t,
    shape: [elements],
    dtype: 'BF16',
    elements,
    contributors: [
      { id: 'a', kept, threshold: 0.1, norm: 2, keptNorm: 1 },
      { id: 'b', kept, threshold: 0, norm: 0, keptNorm: 0 },
    ],
    signConflict: 0.25,
    cosine: [
      [1, 0],
      [0, 1],
    ],
    baseNorm: 1,
    outputChange: 0.01,
    nonFinite: 0,
  };
}

const plain = (text: string) => text.replace(/[\u00a0\u202f]/g, ' ');
const sparsity = metricById('trimmed');

describe('the grid', () => {
  test('two towers: each is a group of rows', () => {
    const at = (stack: string, layer: number, module: string) =>
      tensor(layer, module, `${stack}.${layer}.${module}.weight`);
    const text = [0, 1, 2].flatMap((i) => [
      at('model.language_model.layers', i, 'self_attn.q_proj'),
      at('model.language_model.layers', i, 'mlp.up_proj'),
    ]);
    const vision = [0, 1].map((i) => at('model.vision_tower.encoder.layers', i, 'self_attn.q_proj'));
    const grid = layerGrid([...vision, ...text]);
    expect(grid.modules.map(({ label }) => label)).toEqual(['q', 'up']);
    expect(grid.layers.map(({ layer }) => layer)).toEqual([0, 1, 2, 3, 4]);
    expect(grid.layers.map(rowLabel)).toEqual(['0', '1', '2', 'v0', 'v1']);
    expect(rowWords(grid.layers[4]!)).toBe('vision_tower.encoder, layer 1');
    expect(grid.layers.map(({ tensors }) => tensors[0]?.name.includes('vision'))).toEqual([
      ...[false, false, false],
      ...[true, true],
    ]);
    // the mean of a row is of one tower
    const { rows } = heatmap(grid, new Map(), sparsity, ['a']);
    expect(cellText(rows[4]!.cells[0]!, sparsity)).toMatch(
      /^vision_tower\.encoder, layer 1, self_attn\.q_proj,/,
    );
    expect(rows.map(({ other }) => other?.stack)).toEqual([
      ...[undefined, undefined, undefined],
      ...['vision_tower.encoder', 'vision_tower.encoder'],
    ]);
  });

  test('where layers are of several kinds by name, each kind is a group of rows, what draws ahead of what reads', () => {
    const at = (stack: string, layer: number) => ({ ...tensor(layer, 'to_q', `${stack}_${layer}`), stack });
    const grid = layerGrid([
      ...[0, 1, 2].map((i) => at('text encoder', i)),
      at('input', 4),
      at('middle', 1),
      at('output', 4),
    ]);
    expect(grid.layers.map(rowLabel)).toEqual(['i4', 'm1', 'o4', 't0', 't1', 't2']);
    expect(grid.layers.map(rowWords).slice(0, 4)).toEqual([
      'input, layer 4',
      'middle, layer 1',
      'output, layer 4',
      'text encoder, layer 0',
    ]);
  });

  test('modules in the order data flows, layers by number, the rest apart', () => {
    const grid = layerGrid([
      tensor(null, 'embed_tokens'),
      tensor(1, 'mlp.down_proj'),
      tensor(1, 'self_attn.q_proj'),
      tensor(0, 'self_attn.q_proj'),
      tensor(0, 'odd_module'),
      tensor(0, 'mlp.down_proj'),
      tensor(null, 'norm'),
    ]);
    expect(grid.modules.map((m) => m.module)).toEqual(['self_attn.q_proj', 'mlp.down_proj', 'odd_module']);
    expect(grid.layers.map((l) => l.layer)).toEqual([0, 1]);
    expect(grid.layers[1]?.tensors.map((t) => t?.module ?? null)).toEqual([
      'self_attn.q_proj',
      'mlp.down_proj',
      null,
    ]);
  });

  test('every tensor has a place: biases and namesakes get columns of their own', () => {
    const tensors = [
      tensor(0, 'q_proj'),
      tensor(0, 'q_proj', 'l0.q_proj.bias'),
      tensor(0, 'q_proj', 'l0.q_proj.other'),
    ];
    const grid = layerGrid(tensors);
    const placed = grid.layers.flatMap((l) => l.tensors.flatMap((t) => t?.name ?? []));
    expect(placed.sort()).toEqual(tensors.map((t) => t.name).sort());
    expect(new Set(grid.modules.map((m) => m.label)).size).toBe(3);
  });

  test('labels are short, and long again where short ones collide', () => {
    expect(moduleLabels(['self_attn.q_proj', 'input_layernorm', 'mlp.gate_proj'])).toEqual([
      'q',
      'input norm',
      'gate',
    ]);
    expect(moduleLabels(['attn.c_proj', 'mlp.c_proj'])).toEqual(['attn c', 'mlp c']);
    expect(moduleLabels(['mlp.experts.*.gate_proj', 'mlp.gate'])).toEqual(['experts gate', 'mlp gate']);
    expect(moduleLabels(['a.attn.c_proj', 'b.attn.c_proj'])).toEqual(['a.attn.c_proj', 'b.attn.c_proj']);
  });
});

describe('the values', () => {
  const t = [tensor(12, 'mlp.down_proj'), tensor(12, 'mlp.up_proj'), tensor(13, 'mlp.down_proj')] as const;
  const grid = layerGrid(t);
  const reports = new Map([
    [t[0].name, report(t[0], 199, 1000)],
    [t[2].name, report(t[2], 50, 100)],
  ]);

  test('cells say what they are', () => {
    const data = heatmap(grid, reports, sparsity, ['a']);
    const [up, down] = data.rows[0]!.cells;
    expect(plain(cellText(down!, sparsity))).toBe('layer 12, mlp.down_proj, 80.1 % trimmed');
    expect(cellText(up!, sparsity)).toBe('layer 12, mlp.up_proj, not measured yet');
    expect(plain(cellText(data.rows[1]!.cells[1]!, sparsity))).toBe(
      'layer 13, mlp.down_proj, 50.0 % trimmed',
    );
    const other = heatmap(grid, reports, sparsity, ['b']).rows[0]!.cells[1]!;
    expect(cellText(other, sparsity)).toBe('layer 12, mlp.down_proj, not changed by this model');
  });

  test('a copied tensor is told as such, before and after the run', () => {
    const copied = { ...t[0], copied: true };
    const before = heatmap(layerGrid([copied]), new Map(), sparsity, ['a']);
    const after = heatmap(
      layerGrid([copied]),
      new Map([[copied.name, { ...report(t[0], 1, 10), copied: true }]]),
      sparsity,
      ['a'],
    );
    for (const data of [before, after]) expect(data.rows[0]?.cells[0]?.state).toBe('copied');
  });

  test('the mean over all tensors is the sparsity of the model taken as one tensor', () => {
    const data = heatmap(grid, reports, sparsity, ['a']);
    expect(data.mean).toBeCloseTo(1 - (199 + 50) / 1100, 12);
    expect(extremeValues([data])).toEqual([0.5, 1 - 199 / 1000]);
  });

  test('kept energy of several tensors adds squares', () => {
    const c = { id: 'a', kept: 1, threshold: 0, norm: 4, keptNorm: 2 };
    expect(keptEnergy(c)).toBe(0.25);
    expect(
      mean([
        { value: 0.25, weight: 16 },
        { value: 1, weight: 4 },
      ]),
    ).toBeCloseTo((4 + 4) / 20, 12);
    expect(mean([null, undefined])).toBeNull();
  });

  test('sign conflict and cosine need two models that change the tensor', () => {
    const conflict = metricById('signConflict');
    const cell = heatmap(grid, reports, conflict, []).rows[0]!.cells[1]!;
    expect(cell.state).toBe('unchanged');
    expect(heatmap(grid, reports, metricById('cosine'), ['a', 'b']).rows[0]!.cells[1]!.measured).toBeNull();
  });

  test('rows without news are kept, so that they are not drawn again', () => {
    const rows = [tensor(0, 'q_proj'), tensor(1, 'q_proj')] as const;
    const twoLayers = layerGrid(rows);
    const first = heatmap(twoLayers, new Map([[rows[0].name, report(rows[0], 1, 10)]]), sparsity, ['a']);
    const more = new Map(rows.map((r) => [r.name, report(r, 1, 10)]));
    const second = heatmap(twoLayers, more, sparsity, ['a'], first);
    expect(second.rows[0]).toBe(first.rows[0]);
    expect(second.rows[1]).not.toBe(first.rows[1]);
    expect(second.rows[1]?.cells[0]?.state).toBe('measured');
  });
});

describe('one heatmap less another', () => {
  const places = [tensor(0, 'mlp.up_proj'), tensor(1, 'mlp.up_proj'), tensor(2, 'mlp.up_proj')] as const;
  /** Of 100 changes so many are kept of each tensor; null: it is not measured. */
  const mapOf = (kept: readonly (number | null)[]) => {
    const reports = places.flatMap((t, i) =>
      kept[i] == null ? [] : [[t.name, report(t, kept[i], 100)] as const],
    );
    return heatmap(layerGrid(places), new Map(reports), sparsity, ['a']);
  };

  test('cells are B less A, and so is the mean', () => {
    const difference = differenceOf(mapOf([20, 40, 60]), mapOf([30, 40, 10]));
    const values = difference.rows.map((r) => r.cells[0]?.measured?.value);
    expect(values.map((v) => Number(v?.toFixed(6)))).toEqual([-0.1, 0, 0.5]);
    expect(difference.mean).toBeCloseTo(0.4 / 3, 12);
  });

  test('what one side lacks has no difference', () => {
    const difference = differenceOf(mapOf([20, null, 60]), mapOf([30, 40, null]));
    const cells = difference.rows.map((r) => r.cells[0]);
    expect(cells.map((c) => c?.measured?.value.toFixed(2))).toEqual(['-0.10', undefined, undefined]);
  });

  test('a difference of predicted values has the errors of both', () => {
    const predicted = (value: number, error: number) => ({ value, weight: 1, error });
    const text = (a: Measured, b: Measured) =>
      valueText(differenceMetric(sparsity), differenceIn(a, b)).replaceAll(NBSP, ' ');
    expect(text(predicted(0.2, 0.01), predicted(0.5, 0.03))).toBe('≈ +30.0 pp ± 4.0 pp');
    expect(text(predicted(0.2, 0), predicted(0.5, 0))).toBe('+30.0 pp');
  });

  test('differences are signed in words', () => {
    const metric = differenceMetric(sparsity);
    expect(metric.format(0.125).replace(/\s/, ' ')).toBe('+12.5 pp');
    expect(metric.phrase(-0.125).replace(/\s/, ' ')).toMatch(/12.5.pp against A$/);
    expect(metric.phrase(0)).toBe('no difference');
    expect(metric.diverging).toBe(true);
  });
});
