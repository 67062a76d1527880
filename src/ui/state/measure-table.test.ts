import { expect, test } from 'vitest';
import type { BestRow, TextPart } from '../../reports/find-best';
import type { LossBlock } from '../../reports/paired-error';
import { sampleModels } from '../worker.test.fixture';
import { evaluationRows, modelsKey, tableRows, targetKey } from './evaluation-rows';
import { conclusion } from './measure-conclusion';
import { decimalsOf, measuredFront, placeOn, plotScale } from './measure-plot';
import { initialMeasure, type Measured, type MeasureSlice, type MeasureText } from './measure-state';
import {
  cellKey,
  expectedSeconds,
  generatedKey,
  isOfChoice,
  lossScore,
  measureTable,
  missingCells,
  runPerplexity,
  tableColumns,
  tableErrors,
} from './measure-table';
import { runOf } from './predicted-runs';
import { setEnabled } from './recipe-state';
import { sampleRecipe } from './roles';
import { initialState } from './studio';

const recipe = sampleRecipe(sampleModels);
const texts: MeasureText[] = ['tales', 'recipes'].map((name) => ({
  id: `own ${name}`,
  name,
  text: `${name} `.repeat(1000),
  sha256: { quick: `beginning of ${name}`, full: name },
  origin: 'own',
  chosen: true,
}));
const empty: MeasureSlice = { ...initialMeasure, texts };
const state = { ...initialState, recipe, models: sampleModels };

/** Merges that were tried, by their ids. */
const tried = (...ids: string[]): BestRow[] =>
  ids.map((id, i) => ({
    ...{ id, kind: 'method', label: id.toUpperCase(), lambda: 0.1 * (i + 1), tried: 3, seconds: 1 },
    target: { recipe: { mergeMethod: 'linear', models: [], parameters: { lambda: i }, amalgam: {} } },
    blocks: { tuning: null, choosing: null, reporting: null },
  }));
const found = (rows: BestRow[], best: string | null = null): MeasureSlice['found'] => ({
  ...{ of: modelsKey(recipe, sampleModels), texts: [], own: false, rows },
  report: best === null ? null : ({ best } as NonNullable<MeasureSlice['found']>['report']),
});

/** Losses of twelve blocks: a level that all models share in a block, and what is the model's own. */
const blocks = (mean: number, noise = 0.001): LossBlock[] =>
  Array.from({ length: 12 }, (_, i) => ({
    loss: 32 * (mean + (i % 4 < 2 ? 0.3 : -0.3) + noise * (i % 2 === 0 ? 1 : -1)),
    tokens: 32,
  }));
const cell = (own: LossBlock[], more: Partial<Measured> = {}): Measured => ({
  ...{ blocks: own, seconds: 2, bitsPerByte: 1, leftOut: 0, earlier: null, ...more },
});

/** The slice with these losses, row by row and column by column. */
function measured(
  losses: Record<string, (LossBlock[] | Measured)[]>,
  slice: MeasureSlice,
  part: TextPart = 'reporting',
): MeasureSlice {
  const cells = new Map(slice.cells);
  const columns = tableColumns(slice);
  const rows = tableRows({ ...state, measure: slice });
  for (const [id, own] of Object.entries(losses)) {
    const row = rows.find((one) => one.id === id)!;
    own.forEach((value, c) => {
      const made = Array.isArray(value) ? cell(value) : value;
      cells.set(cellKey(columns[c]!.key, part, targetKey(row.target)), made);
    });
  }
  return { ...slice, cells };
}

const tableOf = (slice: MeasureSlice) => measureTable(tableRows({ ...state, measure: slice }), slice);
const rowOf = (slice: MeasureSlice, id: string) => tableOf(slice).rows.find(({ row }) => row.id === id)!;

test('rows are the recipe and its runs, what was tried for its models, base and contributors', () => {
  const predicted = runOf({ ...state.recipe, method: 'linear' }, state.models, 'p1');
  const rows = tableRows({ ...state, runs: [predicted], measure: { ...empty, found: found(tried('ram')) } });
  expect(rows.map(({ id, group }) => `${group}: ${id}`)).toEqual([
    'runs: run now',
    'runs: run p1',
    'tried: tried ram',
    'models: base',
    'models: model samples/kitchen',
    'models: model samples/harbour',
    'models: model samples/workshop',
  ]);
  expect(rows[0]).toMatchObject({ current: true, place: 0, lambda: '1.00' });
  expect(rows[2]).toMatchObject({ label: 'RAM', lambda: '0.10' });
  expect(rows.slice(-4).map(({ target }) => target)).toEqual([
    { model: 'samples/base' },
    { model: 'samples/base+samples/kitchen' },
    { model: 'samples/base+samples/harbour' },
    { model: 'samples/workshop' },
  ]);
});

test('what was tried for other models is no row; what became the recipe is its row', () => {
  const others = setEnabled(recipe, 'samples/workshop', false);
  const measure = { ...empty, found: found(tried('ram')) };
  expect(tableRows({ ...state, recipe: others, measure }).map(({ group }) => group)).not.toContain('tried');
  const { target } = evaluationRows(recipe, sampleModels).find(({ current }) => current)!;
  const same = found([{ ...tried('given')[0]!, target }]);
  const ids = tableRows({ ...state, measure: { ...empty, found: same } }).map(({ id }) => id);
  expect(ids).not.toContain('tried given');
});

test('a perplexity is e to the mean loss, its error that of the paired difference from the best merge', () => {
  const slice = measured(
    { 'run now': [blocks(0.6), blocks(0.7)], base: [blocks(0.7, 0.005), blocks(0.9, 0.005)] },
    empty,
  );
  const base = rowOf(slice, 'base');
  expect(base.cells[0]!.value).toBeCloseTo(Math.exp(0.7), 2);
  // each text counts the same: of two texts the square root of the product
  const [first, second] = base.cells.map(({ value }) => value!);
  expect(base.mean.value).toBeCloseTo(Math.sqrt(first! * second!), 10);
  // differences of ±0.004 in pairs of blocks: s = 0.004 √(12/11), s.e. = s/√12; over two texts /√2; t of 22 degrees 2.074:
  // one merge beside one model is one comparison
  const error = (0.004 * Math.sqrt(12 / 11)) / Math.sqrt(12) / Math.SQRT2;
  expect(base.mean.apart! / base.mean.value!).toBeCloseTo(2.074 * error, 5);
  // by itself it depends on the blocks that both had
  expect(base.mean.margin!).toBeGreaterThan(20 * base.mean.apart!);
  expect(rowOf(slice, 'run now').mean.apart).toBeNull();
  expect(tableOf(slice).leader?.row.id).toBe('run now');
});

test('no mean before every text is measured; cells that are measured now say so', () => {
  const slice = measured({ base: [blocks(0.4)] }, empty);
  expect(rowOf(slice, 'base').mean.state).toBe('none');
  const running = new Set([
    cellKey('beginning of recipes', 'reporting', targetKey({ model: 'samples/base' })),
  ]);
  expect(rowOf({ ...slice, running }, 'base').cells.map(({ state: of }) => of)).toEqual(['done', 'running']);
});

test('the sentence says only what is outside the error, and which rows are not', () => {
  const slice = { ...empty, found: found(tried('ram', 'karcher', 'ties')) };
  const say = (own: MeasureSlice) => {
    const said = conclusion(tableOf(own));
    return said && `${said.lead}${said.rest}`;
  };
  expect(say(slice)).toBeNull();
  const both = (mean: number, noise?: number) => [blocks(mean, noise), blocks(mean, noise)];
  const apart = { 'tried ram': both(0.5), 'tried karcher': both(0.6), base: both(0.7, 0.01) };
  expect(say(measured(apart, slice))).toMatch(
    /^RAM is the best of 2 merges, on 2.×.1.?[34]\d\d.characters\. It is better than the base by 18\.1\u00a0±\u00a00\.\d\u00a0%\.$/,
  );
  const near = { ...apart, 'tried ties': both(0.501, 0.02) };
  expect(say(measured(near, slice))).toMatch(
    /^RAM cannot be told apart from 1 of 2 other merges \(TIES\), on/,
  );
  const worse = { ...apart, base: both(0.4, 0.01) };
  expect(say(measured(worse, slice))).toMatch(
    /^None of 2 merges is better than the base: RAM comes nearest, worse by 10\.5\u00a0±\u00a00\.\d\u00a0%, on/,
  );
  expect(say(measured({ ...apart, 'model samples/kitchen': both(0.4, 0.01) }, slice))).toMatch(
    /^None of 2 merges is better than kitchen alone: RAM comes nearest, worse by 10\.5\u00a0±\u00a00\.\d+\u00a0%, on .*characters\. It is better than the base by [\d.]+\u00a0±\u00a0[\d.]+\u00a0%\.$/,
  );
  expect(say(measured({ ...apart, 'model samples/kitchen': both(0.501, 0.02) }, slice))).toMatch(
    /better than the base by [\d.]+\u00a0±\u00a0[\d.]+\u00a0%, but cannot be told apart from kitchen alone\.$/,
  );
  expect(say(measured({ ...apart, 'model samples/kitchen': both(0.6, 0.02) }, slice))).toMatch(
    /better than the base by [\d.]+\u00a0±\u00a0[\d.]+\u00a0% and than each contributor alone\.$/,
  );
  const lone = { 'run now': both(0.7, 0.02), base: both(0.701) };
  const said = conclusion(tableOf(measured(lone, empty)));
  expect(`${said?.lead}${said?.rest}`).toMatch(/^Task arithmetic cannot be told apart from the base, on/);
  expect(said?.open.map(({ own }) => own.row.id)).toEqual(['base']);
});

test('another merge is spoken of by the same numbers, and beside the first', () => {
  const slice = { ...empty, found: found(tried('ram'), 'ram') };
  const both = (mean: number, noise?: number) => [blocks(mean, noise), blocks(mean, noise)];
  const say = (own: MeasureSlice) => {
    const said = conclusion(tableOf(own), 'run now');
    return said && `${said.lead}${said.rest}`;
  };
  const lone = { 'tried ram': both(0.5), base: both(0.7, 0.01) };
  expect(say(measured(lone, slice))).toBeNull();
  expect(say(measured({ ...lone, 'run now': both(0.6) }, slice))).toMatch(
    /^Task arithmetic is better than the base by 9\.5\u00a0±\u00a00\.\d+\u00a0%, on 2.×.*characters\. RAM, chosen among 2 merges in Measure, is better than it by 10\.5/,
  );
  expect(say(measured({ ...lone, 'run now': both(0.501, 0.02) }, slice))).toMatch(
    /It cannot be told apart from RAM, chosen among 2 merges in Measure\.$/,
  );
});

test('intervals of a column hold at once: wider with every row, widest where the best leads by these very numbers', () => {
  const both = (mean: number, noise?: number) => [blocks(mean, noise), blocks(mean, noise)];
  const losses = { 'tried ram': both(0.5), 'tried karcher': both(0.6, 0.01), base: both(0.7, 0.01) };
  const rows = tried('ram', 'karcher');
  const apart = (best: string | null, own: Parameters<typeof measured>[0]) => {
    const slice = measured(own, { ...empty, found: found(rows, best) });
    const { comparisons } = tableOf(slice);
    return { comparisons, half: rowOf(slice, 'tried karcher').mean.apart! };
  };
  const chosen = apart('ram', losses);
  expect(chosen.comparisons).toBe(2);
  // t of 22 degrees: 2.405 with p = 0.05 / 2 on both sides, 2.592 with 0.05 / 3
  const here = apart(null, losses);
  expect(here.comparisons).toBe(3);
  expect(here.half / chosen.half).toBeCloseTo(2.592 / 2.405, 2);
});

test('the best is the one that was chosen, unless another is better beyond the error', () => {
  const slice = { ...empty, found: found(tried('linear', 'ram', 'karcher'), 'linear') };
  const both = (mean: number, noise?: number) => [blocks(mean, noise), blocks(mean, noise)];
  const close = { 'tried linear': both(0.5), 'tried ram': both(0.499, 0.02), 'tried karcher': both(0.6) };
  expect(tableOf(measured(close, slice)).leader?.row.label).toBe('LINEAR');
  const better = { ...close, 'run now': both(0.3) };
  expect(tableOf(measured(better, slice)).leader?.row.id).toBe('run now');
});

test('the one that was chosen stays so when it is taken over as the recipe', () => {
  const { target } = evaluationRows(recipe, sampleModels).find(({ current }) => current)!;
  const slice = { ...empty, found: found([{ ...tried('given')[0]!, target }], 'given') };
  const both = [blocks(0.5), blocks(0.5)];
  const table = tableOf(measured({ 'run now': both, base: both }, slice));
  expect(table).toMatchObject({ isChosen: true, leader: { row: { id: 'run now' } } });
});

test('numbers of another part of the text are compared with nothing', () => {
  const slice = { ...empty, found: found(tried('ram')) };
  const tuned = measured({ 'tried ram': [blocks(0.1), blocks(0.1)] }, slice, 'tuning');
  const both = measured({ 'run now': [blocks(0.6), blocks(0.6)] }, tuned);
  expect(rowOf(both, 'tried ram').mean).toMatchObject({ state: 'done', apart: null });
  expect(tableOf(both).leader?.row.id).toBe('run now');
  // it is still wanted on the part that is reported
  expect(missingCells(tableOf(both)).filter(({ row }) => row.id === 'tried ram')).toHaveLength(2);
});

test('what is measured on the choosing part alone is not drawn, comes last, and the sentence counts it', () => {
  const slice = { ...empty, found: found(tried('ram', 'karcher', 'ties'), 'ram') };
  const both = (mean: number) => [blocks(mean), blocks(mean)];
  // by its own part it would come first
  const chosen = measured({ 'tried ram': both(0.45), 'tried ties': both(0.4) }, slice, 'choosing');
  const table = tableOf(
    measured({ 'tried ram': both(0.5), base: both(0.7), 'tried karcher': both(0.6) }, chosen),
  );
  const ids = table.rows.filter(({ row }) => row.group === 'tried').map(({ row }) => row.id);
  expect(ids).toEqual(['tried ram', 'tried karcher', 'tried ties']);
  const elsewhere = table.rows.filter(({ by }) => by.isElsewhere);
  expect(elsewhere.map(({ row }) => row.id)).toEqual(['tried ties']);
  expect(elsewhere[0]!.by).toMatchObject({ apart: null, value: expect.closeTo(Math.exp(0.4), 2) });
  // it stands beside the number that the leader has on that part
  expect(elsewhere[0]!.by.gap?.mean).toBeCloseTo(0.4 - 0.45, 10);
  expect(plotScale(table)!.least).toBeGreaterThan(Math.exp(0.4) + 0.1);
  const said = conclusion(table)!;
  expect(said.lead + said.rest).toMatch(
    /^RAM is the best of 2 merges.* One more was compared on the choosing part alone\.$/,
  );
  // while nothing is reported, all stand beside each other on the choosing part, and that is said
  const early = tableOf(chosen);
  expect(early.rows.filter(({ by }) => by.isElsewhere)).toEqual([]);
  expect(early.rows.flatMap(({ row, by }) => (isOfChoice(by) ? [row.id] : []))).toHaveLength(2);
  expect(conclusion(early)!.rest).toMatch(/characters of the choosing part/);
});

test('what was read of a text is said: all of one too short to be cut, and lengths that differ', () => {
  const short = { ...texts[0]!, id: 'own note', name: 'note', text: 'Too short.' };
  const say = (own: MeasureText[]) => {
    const slice = measured({ 'run now': own.map(() => blocks(0.5)) }, { ...empty, texts: own });
    return conclusion(tableOf(slice))!.rest;
  };
  expect(say([short])).toMatch(/on all 10 characters of note\.$/);
  expect(say([short, texts[1]!])).toMatch(/on 2.×.10–1.\d{3}.characters\.$/);
});

test('tried merges are in the order of their means, runs and models stay where they are', () => {
  const slice = { ...empty, found: found(tried('ram', 'karcher')) };
  const both = (mean: number) => [blocks(mean), blocks(mean)];
  const ids = tableOf(measured({ 'tried ram': both(0.6), 'tried karcher': both(0.5) }, slice)).rows.map(
    ({ row }) => row.id,
  );
  expect(ids.slice(0, 4)).toEqual(['run now', 'tried karcher', 'tried ram', 'base']);
});

test('the same model, text and amount are measured once; failures are tried again and told once', () => {
  const error = { code: 'TextTooShort', message: 'Too short.', hint: 'Longer.' } as const;
  const slice = measured({ base: [blocks(0.4)] }, empty);
  const failed = new Map(slice.cells).set(
    cellKey('beginning of recipes', 'reporting', targetKey({ model: 'samples/base' })),
    { error },
  );
  const after = { ...slice, cells: failed };
  const ofBase = (of: MeasureSlice) =>
    missingCells(tableOf(of)).flatMap(({ row, column }) => (row.id === 'base' ? [column.name] : []));
  expect(ofBase(after)).toEqual(['recipes']);
  expect(ofBase({ ...after, amount: 'full' })).toEqual(['tales', 'recipes']);
  expect(tableErrors(tableOf(after).rows)).toEqual([{ rows: ['base'], error }]);
});

test('the time of what is missing follows the characters of what was measured', () => {
  const slice = measured({ base: [cell(blocks(0.4), { seconds: 3 })] }, empty);
  const table = tableOf(slice);
  const kitchen = missingCells(table).filter(({ row }) => row.id === 'model samples/kitchen');
  const [tales, recipes] = table.columns.map(({ characters }) => characters);
  expect(expectedSeconds(kitchen, table)).toBeCloseTo((3 * (tales! + recipes!)) / tales!, 10);
  expect(expectedSeconds(kitchen, tableOf(empty))).toBeNull();
});

test('without a text the columns are what the contributors generated, by their names', () => {
  const own = { ...found(tried('ram'))!, own: true };
  const generated = { kind: 'generated', tokens: { tuning: 1, choosing: 1, reporting: 1 } } as const;
  const slice: MeasureSlice = {
    ...initialMeasure,
    found: { ...own, texts: [{ ...generated, name: 'samples/base+samples/kitchen' }] },
  };
  expect(tableColumns(slice)).toMatchObject([
    { kind: 'generated', name: 'kitchen', key: generatedKey('samples/base+samples/kitchen') },
  ]);
  expect(missingCells(tableOf(slice))).toHaveLength(6);
  expect(tableColumns({ ...slice, texts }).map(({ kind }) => kind)).toEqual(['text', 'text']);
});

test('by a task the larger accuracy leads, in points beside the base', () => {
  const tasks = { ...initialMeasure.tasks, chosen: ['arc_easy'] };
  const slice = { ...empty, tasks, by: 'task arc_easy' };
  const { key } = tableColumns(slice).at(-1)!;
  const items = (wrong: number) =>
    Array.from({ length: 100 }, (_, i) => ({ loss: i < wrong ? 1 : 0, tokens: 1 }));
  const cells = new Map([
    [cellKey(key, 'all', targetKey({ model: 'samples/base' })), cell(items(60))],
    [cellKey(key, 'all', targetKey(evaluationRows(recipe, sampleModels).at(-1)!.target)), cell(items(30))],
  ]);
  const table = tableOf({ ...slice, cells });
  expect(table.isAccuracy).toBe(true);
  expect(table.rows.find(({ row }) => row.id === 'base')?.by.value).toBeCloseTo(0.4, 12);
  const said = conclusion(table)!;
  // 30 of 100 gained: s.e. = √(0.3 · 0.7 / 99) = 0.046
  expect(said.lead + said.rest).toBe(
    'Task arithmetic is better than the base by 30\u00a0±\u00a09\u00a0points, on 100\u00a0items.',
  );
});

test('dots lie on one linear scale; a merge that broke is beyond its end', () => {
  const slice = { ...empty, found: found(tried('ram', 'dare')) };
  const both = (mean: number) => [blocks(mean, 0), blocks(mean, 0)];
  expect(plotScale(tableOf(measured({ base: both(1) }, slice)))).toBeNull();
  const scale = plotScale(
    tableOf(measured({ base: both(1), 'tried ram': both(1.2), 'tried dare': both(9) }, slice)),
  )!;
  const shift = rowOf(measured({ base: both(1) }, slice), 'base').mean.value! / Math.exp(1);
  expect(scale.least).toBeCloseTo(Math.exp(1) * shift, 8);
  expect(scale.most).toBeCloseTo(Math.exp(1.2) * shift, 8);
  expect(placeOn(scale, (scale.least + scale.most) / 2)).toBeCloseTo(0.5, 12);
  expect(placeOn(scale, Math.exp(9))).toBeNull();
});

test('of two texts the front is the merges that none beats on one without losing on the other; the tuned number stands beside', () => {
  const slice = { ...empty, found: found(tried('first', 'middle', 'behind', 'last')) };
  const pair = (a: number, b: number) => [blocks(a, 0), blocks(b, 0)];
  const ids = ['tried first', 'tried middle', 'tried behind', 'tried last', 'base'];
  const losses = [pair(1, 2), pair(1.2, 1.5), pair(1.3, 1.6), pair(1.4, 1.1), pair(0.5, 0.5)];
  const held = measured(Object.fromEntries(ids.map((id, i) => [id, losses[i]!])), slice);
  const table = tableOf(held);
  const { columns, points } = measuredFront(table);
  expect(columns.map(({ name }) => name)).toEqual(['tales', 'recipes']);
  expect(points.map(({ row }) => row.id)).toEqual(['tried first', 'tried middle', 'tried last']);
  const middle = rowOf(held, 'tried middle');
  expect(points[1]!.values).toEqual(middle.cells.map(({ value }) => value));
  expect(middle.mean.tuned).toBeNull();
  const both = measured({ 'tried middle': pair(0.9, 0.9) }, held, 'tuning');
  expect(lossScore(rowOf(both, 'tried middle').mean.tuned!, 'perplexity')).toBeLessThan(middle.mean.value!);
  expect(rowOf(both, 'tried middle').mean.value).toBe(middle.mean.value);
  // of one without settings it is no tuned number
  const once = { ...both, found: found(slice.found!.rows.map((row) => ({ ...row, tried: 1 }))) };
  expect(rowOf(once, 'tried middle').mean.tuned).toBeNull();
  expect(measuredFront({ ...table, columns: table.columns.slice(0, 1) }).points).toEqual([]);
});

test('a column has as many decimals as its errors allow', () => {
  const leader = rowOf(empty, 'base');
  const cells = (apart: number | null, value = 17.9) => [{ ...leader.mean, apart, value }];
  const places = (own: ReturnType<typeof cells>) => decimalsOf({ leader }, own);
  expect(places(cells(0.21))).toBe(1);
  expect(places(cells(0.012))).toBe(2);
  expect(places(cells(3.1, 250))).toBe(0);
  expect(places(cells(0.4, 3.4))).toBe(2);
  expect(places(cells(null))).toBe(3);
});

test('a run has its perplexity once all texts are measured', () => {
  const { target } = evaluationRows(recipe, sampleModels).at(-1)!;
  const own = 'recipe' in target ? target.recipe : null;
  expect(runPerplexity({ measure: empty }, own!)).toBeNull();
  const slice = measured({ 'run now': [blocks(0.6, 0), blocks(0.8, 0)] }, empty);
  expect(runPerplexity({ measure: slice }, own!)).toBe(rowOf(slice, 'run now').mean.value!.toFixed(2));
});
