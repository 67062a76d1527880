/** That a tool is whole: what has one part of it has the others (CONTRIBUTING.md). */
import { expect, test } from 'vitest';
import { VERBS } from './cli/verbs';
import type { Option } from './reports/option';
import { imports, production, read } from './syntax.test.support';
import { TOOLS } from './tools';
import { TOOL_CALLS } from './tools/calls';
import { JOB_WORDS, PLACES, TABS } from './ui/state/tabs';

const roomsWith = (file: string) =>
  production.filter(({ path, room }) => path === `${room}/${file}`).map(({ room }) => room);

const rows = TOOLS.map((row) => ({ ...row, name: row.id }));

test('every folder of a tool is a row, and every row a folder', () => {
  const folders = new Set(production.flatMap(({ path }) => /^tools\/([^/]+)\//.exec(path)?.[1] ?? []));
  expect([...folders].sort()).toEqual(TOOLS.map(({ id }) => id).sort());
});

test.each(rows)('$name: the worker has the calls of its row', ({ id, jobs }) => {
  expect(TOOL_CALLS[id]).toEqual(Object.keys(jobs));
});

test.each(rows)('$name: a row has its screen, its job, its verb with every option, and help', (row) => {
  const { id, options } = row;
  const paths = production.map(({ path }) => path);
  // that the job answers the calls that the row names is checked by the compiler
  expect(paths).toEqual(expect.arrayContaining([`tools/${id}/Screen`, `tools/${id}/job`]));
  const shared = Object.entries<Option>(options).filter(([, { only }]) => only !== 'studio');
  const verb = VERBS.find((one) => shared.every(([name, option]) => one.options[name] === option));
  expect(verb).toBeDefined();
  for (const [, { help }] of shared) expect(help.length).toBeGreaterThan(8);
});

test('a room with a job is called by the worker', () => {
  const rooms = roomsWith('job').filter((room) => room !== 'cli');
  expect(rooms.filter((room) => !imports('worker', room))).toEqual([]);
});

test('options are those of a form and of a verb', () => {
  const unasked = roomsWith('options').flatMap((room) =>
    ['ui', 'cli/verbs'].flatMap((asker) => (imports(asker, `${room}/options`) ? [] : [`${asker}: ${room}`])),
  );
  expect(unasked).toEqual(['ui: tasks']);
});

test('every verb is in the index, every screen of a tab in the studio', () => {
  const verbs = production.filter(({ path }) => /^cli\/verbs\/(?!index$)/.test(path));
  expect(verbs.filter(({ path }) => !imports('cli/verbs/index', path)).map(({ path }) => path)).toEqual([]);
  const screens = production.filter(({ path }) => /^ui\/.*Tab$/.test(path));
  expect(screens.filter(({ path }) => !imports('ui/Workbench', path)).map(({ path }) => path)).toEqual([]);
});

test('every kind of job is begun by somebody', () => {
  const begun = production
    .filter(({ path, room }) => room === 'ui' && path !== 'ui/state/tabs')
    .map(({ text }) => text)
    .join();
  expect(Object.keys(JOB_WORDS).filter((kind) => !begun.includes(`'${kind}'`))).toEqual([]);
});

test.each([
  ['places', PLACES.map(({ text }) => text)],
  ['tabs', TABS.flatMap(({ id, text }) => (id === 'recipe' ? [] : [text]))],
])('docs/design.md names the %s in their order', (what, names) => {
  const [, named] = new RegExp(`${what} \\*([^*]+)\\*`).exec(read('docs/design.md')) ?? [];
  expect(named?.split(/\s+·\s+/)).toEqual(names);
});
