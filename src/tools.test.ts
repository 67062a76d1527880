/** That a tool is whole: what has one part of it has the others (CONTRIBUTING.md). */
import { expect, test } from 'vitest';
import { imports, production, read } from './syntax.test.support';
import { JOB_WORDS, TABS } from './ui/state/tabs';

const roomsWith = (file: string) =>
  production.filter(({ path, room }) => path === `${room}/${file}`).map(({ room }) => room);

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
  expect(screens.filter(({ path }) => !imports('ui/tab-parts', path)).map(({ path }) => path)).toEqual([]);
});

test('every kind of job is begun by somebody', () => {
  const begun = production
    .filter(({ path }) => path.startsWith('ui/') && path !== 'ui/state/tabs')
    .map(({ text }) => text)
    .join();
  expect(Object.keys(JOB_WORDS).filter((kind) => !begun.includes(`'${kind}'`))).toEqual([]);
});

test('docs/design.md names the tabs in their order', () => {
  const [, named] = /tabs \*([^*]+)\*/.exec(read('docs/design.md')) ?? [];
  const tabs = TABS.flatMap(({ id, text }) => (id === 'recipe' ? [] : [text]));
  expect(named?.split(/\s+·\s+/)).toEqual(tabs);
});
