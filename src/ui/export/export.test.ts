import { describe, expect, test } from 'vitest';
import type { TensorReport } from '../../reports/job';
import type { MergeReport } from '../../reports/merge';
import type { PlanTensorFacts } from '../../reports/plan';
import { metricById } from '../charts/metrics';
import { type ChartSet, chartSets, type Drawn } from './chart-sets';
import { escapeMarkup } from './escape';
import { heatmapSvg } from './heatmap-svg';
import { reportHtml } from './report-html';
import { tensorCsv } from './tensor-csv';

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
const tensors: PlanTensorFacts[] = reports.map(({ name, layer, module, shape, dtype, elements, copied }) => {
  return { name, layer, module, shape, dtype, elements, copied, contributors: [0, 1] };
});
const drawn: Drawn = {
  title: HOSTILE,
  contributors: [
    { id: 'a', label: 'a', colour: 0 },
    { id: HOSTILE, label: HOSTILE, colour: 1 },
  ],
  tensors,
  reports: new Map(reports.map((r) => [r.name, r])),
};
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
  inputs: [{ id: HOSTILE, file: HOSTILE, sha256: 'a'.repeat(64) }],
  shards: [{ file: HOSTILE, bytes: 20, sha256: 'b'.repeat(64) }],
  tensors: reports,
};

/** Tags and attributes are those we wrote: no element named by data, and quotes in pairs. */
function tagsOf(markup: string): Set<string> {
  return new Set([...markup.matchAll(/<\/?([a-zA-Z!][\w-]*)/g)].map(([, name]) => name!));
}

describe('charts as SVG', () => {
  const [set] = chartSets(metricById('trimmed'), drawn, null, 'full');
  const svg = heatmapSvg([set as ChartSet]);

  test('every cell has its colour and its value in words', () => {
    expect(svg.replace(/\s/g, ' ')).toContain('layer 0, mlp.up_proj, 80.0 % trimmed');
    expect(svg).toContain(set!.scale.color(0.8));
    expect(svg).toContain(set!.scale.color(0.5));
    expect([...svg.matchAll(/<title>/g)]).toHaveLength(6);
  });

  test('names cannot break out of it', () => {
    expect(svg).not.toContain('<script');
    expect(tagsOf(svg)).toEqual(new Set(['svg', 'rect', 'g', 'text', 'title']));
    expect(svg).toContain(escapeMarkup(HOSTILE));
  });

  test('with a pinned state: A and B on one scale, and B − A around 0', () => {
    const other = { ...drawn, reports: new Map([tensor(0, 'mlp.up_proj', 7)].map((r) => [r.name, r])) };
    const sets = chartSets(metricById('trimmed'), drawn, other, 'fit');
    expect(sets.map((s) => s.title.slice(0, 2))).toEqual(['A:', 'B:', 'B ']);
    expect(sets[0]?.scale.min).toBe(sets[1]?.scale.min);
    const cell = sets[2]?.charts[0]?.data.rows[0]?.cells[0];
    expect(cell?.measured?.value).toBeCloseTo(0.8 - 0.3, 12);
    expect(sets[2]?.scale.min).toBe(-(sets[2]?.scale.max ?? 0));
  });
});

describe('numbers as CSV', () => {
  test('one line a tensor, every line with the same fields, in full precision', () => {
    const third = { ...tensor(0, 'q', 3), outputChange: 1 / 3 };
    const lines = tensorCsv([third, { ...tensor(1, 'q', 3), copied: true }], ['a']).split('\r\n');
    expect(lines).toHaveLength(4);
    expect(lines[0]).toBe(
      'tensor,layer,module,shape,dtype,elements,copied,base_norm,output_change,sign_conflict,non_finite,kept a,sparsity a,threshold a,norm a,kept_norm a,kept_energy a',
    );
    expect(lines[1]).toBe(
      'model.layers.0.q.weight,0,q,2x5,BF16,10,false,4,0.3333333333333333,0.5,0,3,0.7,0.25,2,1,0.25',
    );
    expect(lines[2]).toBe('model.layers.1.q.weight,1,q,2x5,BF16,10,true,4,0.1,0.5,0,,,,,,');
  });

  test('quotes, commas and what a spreadsheet would run', () => {
    const odd = { ...tensor(0, 'q', 3), name: '=1+"2",3' };
    expect(tensorCsv([odd], [])).toContain(`"'=1+""2"",3",0`);
  });

  test('cosines of every pair', () => {
    expect(tensorCsv([tensor(0, 'q', 3)], ['a', HOSTILE]).split('\r\n')[1]).toMatch(/,-0\.125$/);
  });
});

describe('a run as HTML', () => {
  const html = reportHtml({ ...drawn, methodTitle: HOSTILE, report }, 'today');

  test('has recipe, hashes, times, charts and every tensor', () => {
    for (const hash of [report.recipeSha256, 'a'.repeat(64), 'b'.repeat(64)]) expect(html).toContain(hash);
    expect(html).toContain('merge_method: ties');
    expect([...html.matchAll(/<svg /g)].length).toBeGreaterThan(4);
    for (const { name } of reports) expect(html).toContain(escapeMarkup(name));
    expect(html).toContain('50.0\u00a0%');
  });

  test('has no script, asks for nothing, and names cannot break out of it', () => {
    expect(html).not.toMatch(/<script/i);
    expect(html).not.toMatch(/\s(src|href|on\w+)=/);
    expect(html).toContain("default-src 'none'");
    expect([...tagsOf(html)].sort()).toEqual(
      [
        ...['!doctype', 'body', 'code', 'div', 'g', 'h1', 'h2', 'head', 'html', 'meta', 'p', 'pre', 'rect'],
        ...['style', 'svg', 'table', 'td', 'text', 'th', 'title', 'tr'],
      ].sort(),
    );
  });
});
