import { expect, test } from 'vitest';
import {
  lowRankDelta,
  modelFolder,
  optionsOf,
  plus,
  random,
  sidesOf,
  type Weights,
} from './compare.test.support';
import { type Comparison, compareModels } from './compare-models';
import { reportFiles } from './report-files';

const EVIL = 'model.layers.0.<script>alert("1")</script>.weight';
const base: Record<string, Weights> = {
  [EVIL]: random([24, 30], 0.1, 1),
  'model.layers.1.mlp.up_proj.weight': random([24, 30], 0.1, 2),
  ['__proto__']: random([4], 1, 3),
};

async function compared(): Promise<Comparison> {
  const tuned = { ...base, [EVIL]: plus(base[EVIL]!, lowRankDelta([24, 30], 2, 0.02, 4)) };
  const folders = [modelFolder('base', base), modelFolder('<b>tuned & co</b>', tuned)];
  return compareModels(optionsOf(await sidesOf(folders, 'base', '<b>tuned & co</b>')), []);
}

test('all files, with the names of the issue; JSON with every figure of every tensor', async () => {
  const comparison = await compared();
  const files = new Map(reportFiles(comparison).map(({ path, text }) => [path, text()]));
  expect([...files.keys()].sort()).toEqual([
    'architecture_comparison.json',
    'comparison_report.html',
    'config_comparison.json',
    'difference.txt',
    'lora_analysis.json',
    'weight_differences.json',
  ]);
  const weights = JSON.parse(files.get('weight_differences.json')!);
  expect(Object.keys(weights.tensors).sort()).toEqual(Object.keys(base).sort());
  const { report } = comparison;
  const evil = report.tensors.find(({ name }) => name === EVIL)!;
  expect(weights.tensors[EVIL]).toMatchObject({
    relative_diff: evil.relative,
    cosine: evil.cosine,
    modified: true,
  });
  expect(weights.tensors[EVIL].row_norms).toHaveLength(24);
  expect(weights.ranking_by_relative_diff[0]).toBe(EVIL);
  const lora = JSON.parse(files.get('lora_analysis.json')!);
  expect(Object.keys(lora.tensors)).toEqual([EVIL]);
  expect(lora.tensors[EVIL]).toMatchObject({ rank95: 2, rank95_is_bound: false, potential_lora: true });
  expect(files.get('difference.txt')).toContain('model.layers.1.mlp.up_proj.weight');
  expect(files.get('comparison_report.html')).toMatch(
    /Findings.*3 tensors compared: 1 modified, 2 identical/s,
  );
});

test('the page holds no markup from names, no script and no outside resource', async () => {
  const page = reportFiles(await compared())
    .find(({ path }) => path.endsWith('.html'))!
    .text();
  expect(page).not.toMatch(/<script|<b>|\son\w+=|javascript:|https?:|src=|url\(/i);
  expect(page).toContain('&#60;script&#62;alert(&#34;1&#34;)&#60;/script&#62;');
  expect(page).toContain('&#60;b&#62;tuned &#38; co&#60;/b&#62;');
  const open = [...page.matchAll(/<(\w+)(?=[\s>])[^>]*?(\/?)>/g)]
    .filter(([, , closed]) => !closed)
    .map(([, tag]) => tag);
  const closed = [...page.matchAll(/<\/(\w+)>/g)].map(([, tag]) => tag);
  const count = (tags: (string | undefined)[], tag: string) => tags.filter((t) => t === tag).length;
  for (const tag of ['table', 'tr', 'td', 'th', 'section', 'li', 'svg'])
    expect(count(open, tag), tag).toBe(count(closed, tag));
});
