import { describe, expect, test } from 'vitest';
import { escapeMarkup } from '../../formats/html-page';
import type { TensorReport } from '../../reports/job';
import type { MergeReport } from '../../reports/merge';
import type { PlanTensor } from '../../reports/plan';
import { heatmap } from '../charts/heatmap-data';
import { metricById } from '../charts/metrics';
import { arrange, depthOf } from '../layers/columns';
import { finishedRun, type LayersRun } from '../layers/runs';
import { tensorCsv } from './exported-files';
import { figureOf, figureSvg } from './figure';

const HOSTILE = `<script>alert("x")</script>&'`;

function tensor(layer: number | null, module: string, kept: number): TensorReport {
  return {
    name: layer === null ? module : `model.layers.${layer}.${module}.weight`,
    layer,
    module,
    shape: [2, 5],
    dtype: 'BF16',
    elements: 10,
    copied: false,
    contributors: [
      { id: 'a', kept, threshold: 0.25, norm: 2, keptNorm: 1 },
      { id: HOSTILE, kept: 10, threshold: 0, norm: 1, keptNorm: 1 },
    ],
    signConflict: 0.5,
    cosine: [
      [1, -0.125],
      [-0.125, 1],
    ],
    baseNorm: 4,
    outputChange: 0.1,
    nonFinite: 0,
  };
}

const reports = [tensor(0, 'mlp.up_proj', 2), tensor(1, 'mlp.up_proj', 5), tensor(null, HOSTILE, 1)];
const tensors: PlanTensor[] = reports.map(({ name, layer, module, shape, dtype, elements, copied }) => {
  return { name, layer, module, shape, dtype, elements, copied, contributors: [0, 1] };
});
const contributors = [
  { id: 'a', label: 'a', color: 0 },
  { id: HOSTILE, label: HOSTILE, color: 1 },
];
const report: MergeReport = {
  recipe: {
    mergeMethod: 'ties',
    baseModel: HOSTILE,
    models: [{ model: HOSTILE, parameters: { weight: 1 } }],
    parameters: {},
    amalgam: {},
  },
  recipeSha256: 'f'.repeat(64),
  engine: 'cpu',
  adapter: HOSTILE,
  version: '0',
  seconds: 3,
  stages: { read: 1, upload: 0, compute: 2, readback: 0, write: 1 },
  peakBytes: 100,
  inputs: [{ id: HOSTILE, file: HOSTILE, hash: 'a'.repeat(64) }],
  shards: [{ file: HOSTILE, bytes: 20, hash: 'b'.repeat(64) }],
  tensors: reports,
};
const run: LayersRun = {
  ...finishedRun({
    id: '1',
    status: 'done',
    title: HOSTILE,
    methodTitle: HOSTILE,
    recipe: report.recipe,
    contributors,
    planned: tensors,
    layers: 2,
    destination: { kind: 'downloads', name: HOSTILE, folder: null },
    outputFiles: [],
    startedAt: 0,
    progress: null,
    tensors: reports,
    notes: [],
    report,
    error: null,
  }),
  name: HOSTILE,
};

/** Tags and attributes are those we wrote: no element named by data, and quotes in pairs. */
function tagsOf(markup: string): Set<string> {
  return new Set([...markup.matchAll(/<\/?([a-zA-Z!][\w-]*)/g)].map(([, name]) => name!));
}

describe('a figure as SVG', () => {
  const metric = metricById('trimmed');
  const { grid, bands } = arrange(tensors, null);
  const view = { metric, grid, bands, title: 'Trimmed' };
  const chart = (title: string, all: readonly TensorReport[], subject: string) => ({
    title,
    note: null,
    data: heatmap(grid, new Map(all.map((r) => [r.name, r])), metric, [subject]),
  });
  const subjects = contributors.map(({ id, label }) => chart(label, reports, id));
  const figure = figureOf(view, subjects);
  const svg = figureSvg(figure);
  const tags = new Set(['svg', 'rect', 'g', 'text', 'title', 'polyline']);

  test('every cell has its color, its number and its value in words; layers, modules and title are named', () => {
    expect(svg.replace(/\s/g, ' ')).toContain('layer 0, mlp.up_proj, 80.0 % trimmed');
    expect(svg).toContain(figure.scale.color(0.8));
    expect(svg).toContain(figure.scale.color(0.5));
    // four of the charts, two of their difference
    expect([...svg.matchAll(/<rect [^>]*><title>/g)]).toHaveLength(6);
    for (const words of ['>80<', '>50<', '>Trimmed<', '>layer<', '>1<', '>up<', '>MLP<', '>Mean by layer<'])
      expect(svg).toContain(words);
  });

  test('names cannot break out of it', () => {
    expect(svg).not.toContain('<script');
    expect(tagsOf(svg)).toEqual(tags);
    expect(svg).toContain(escapeMarkup(HOSTILE));
  });

  const runs = [chart('A: one', reports, 'a'), chart(HOSTILE, [tensor(0, 'mlp.up_proj', 7)], 'a')];

  test('two runs on one scale, and B − A around 0', () => {
    const both = figureOf(view, runs);
    const cell = both.difference?.data.rows[0]?.cells[0];
    expect(cell?.measured?.value).toBeCloseTo(0.3 - 0.8, 12);
    expect(both.difference?.scale.min).toBe(-(both.difference?.scale.max ?? 0));
    expect(tagsOf(figureSvg(both))).toEqual(tags);
  });

  test('a mean that is predicted says so, and so does a difference from it', () => {
    const [a, b] = runs;
    const meansIn = (charts: Parameters<typeof figureOf>[1]) =>
      [...figureSvg(figureOf(view, charts)).matchAll(/mean (≈?)/g)].map(([, sign]) => sign);
    expect(meansIn([a!, { ...b!, note: 'predicted' }])).toEqual(['', '≈', '≈']);
    expect(meansIn([a!, b!])).toEqual(['', '', '']);
  });

  test('what chance would give is a line of its own, on the axis of the means', () => {
    const [own] = runs;
    const { lines, ends, path } = depthOf(view, [{ ...own!, chanceOf: () => 0.2 }]);
    const drawn = figureSvg(figureOf(view, [{ ...own!, chanceOf: () => 0.2 }]));
    expect([...drawn.matchAll(/<polyline[^>]*dasharray/g)]).toHaveLength(1);
    // means of 0.8 and 0.5 above it: the axis begins below it, and ends above the largest
    expect(lines[0]!.map(({ value }) => value)).toEqual([0.8, 0.5]);
    const [at, chance] = [0.8, 0.2].map((value) =>
      Number(path([{ value, row: 0 }], 100, () => 0).split(',')[0]),
    );
    expect(chance).toBeGreaterThan(0);
    expect(at).toBeLessThan(100);
    for (const end of ends) expect(drawn).toContain(`>${end}<`);
  });

  test('of four runs each has its chart and its line, and they share a legend', () => {
    const four = figureSvg(figureOf(view, [...runs, ...runs]));
    expect([...four.matchAll(/<polyline/g)]).toHaveLength(4);
    // one ramp of 17 colors
    expect([...four.matchAll(/height='6'/g)]).toHaveLength(17);
  });
});

describe('numbers as CSV', () => {
  const linesOf = (report: TensorReport) =>
    tensorCsv([
      {
        ...run,
        name: 'TIES, 0.2',
        tensors: [{ ...tensors[0]!, name: report.name }],
        reports: new Map([[report.name, report]]),
      },
    ]).split('\r\n');

  test('a line for each run, tensor, metric and subject, in full precision', () => {
    const lines = linesOf({ ...tensor(0, 'q', 3), outputChange: 1 / 3 });
    expect(lines[0]).toBe('run,tensor,layer,module,elements,metric,subject,value,error,kind');
    expect(lines[1]).toBe(
      '"TIES, 0.2",model.layers.0.q.weight,0,q,10,outputChange,,0.3333333333333333,0,exact',
    );
    expect(lines.filter((line) => line.includes(',trimmed,'))[0]).toMatch(/,0\.7,0,exact$/);
    // what was copied has no numbers
    expect(linesOf({ ...tensor(1, 'q', 3), copied: true })).toHaveLength(2);
  });

  test('quotes, commas and what a spreadsheet would run', () => {
    expect(linesOf({ ...tensor(0, 'q', 3), name: '=1+"2",3' })[1]).toContain(`"'=1+""2"",3",0`);
  });
});
