import { expect, onTestFinished, test, vi } from 'vitest';
import { conversationLine } from '../../formats/conversations';
import { BEST_STEPS } from '../../reports/find-best';
import { QUICK_CHARACTERS, scoredText } from '../../reports/text-parts';
import { fixtureWorker, sampleModels } from '../worker.test.fixture';
import { whyNotWrite } from './generation';
import { find, measure, whyNotFind, whyNotMeasure, whyNotRun } from './measure';
import { mergeGate } from './merge-gate';
import { sampleRecipe } from './roles';
import { createStudio, initialState, type StudioState } from './studio';
import type { JobKind } from './tabs';

const ready: StudioState = {
  ...initialState,
  engine: { ...initialState.engine, status: 'ready' },
  models: sampleModels,
  recipe: sampleRecipe(sampleModels),
  measure: {
    ...initialState.measure,
    texts: [
      { id: 'own 1', name: 'a', text: 'a b', sha256: { quick: '1', full: '1' }, origin: 'own', chosen: true },
    ],
  },
};

test('open when the engine is free, there are models and a text', () => {
  expect(whyNotMeasure(ready)).toBeNull();
  expect(whyNotWrite(ready)).toBeNull();
});

test('one job at a time, and each says which', () => {
  const doing = (kind: JobKind): StudioState => ({
    ...ready,
    job: { kind, progress: null, canceling: false },
  });
  expect(whyNotRun(doing('merge'))).toMatch(/merge is running/);
  expect(whyNotRun({ ...ready, elsewhere: { name: 'x', progress: null } })).toMatch(/another tab/);
  const writing = doing('generation');
  expect(whyNotMeasure(writing)).toMatch(/generating text/);
  expect(mergeGate(writing)).toMatchObject({ open: false, tone: 'wait', tab: 'try' });
  const measuring = doing('evaluation');
  expect(whyNotWrite(measuring)).toMatch(/measured/);
  expect(mergeGate(measuring)).toMatchObject({ open: false, tone: 'wait', tab: 'measure' });
});

test('without models or a prompt it says what is missing; without a text the contributors generate one', () => {
  const textless = { ...ready, measure: initialState.measure };
  expect(whyNotMeasure(textless)).toBeNull();
  const alone = { ...textless.recipe, base: null };
  expect(whyNotMeasure({ ...textless, recipe: alone })).toBe('Choose a base first.');
  expect(whyNotMeasure({ ...ready, recipe: alone })).toBeNull();
  expect(whyNotFind({ ...ready, recipe: alone })).toBe('Choose a base first.');
  expect(whyNotMeasure({ ...ready, recipe: initialState.recipe })).toMatch(/no models/);
  const tasks = { ...initialState.measure.tasks, chosen: ['arc_easy'], limit: 0 };
  expect(whyNotMeasure({ ...ready, measure: { ...ready.measure, tasks } })).toMatch(/^Items/);
  const prompt = { ...ready.generation, settings: { ...ready.generation.settings, prompt: ' ' } };
  expect(whyNotWrite({ ...ready, generation: prompt })).toMatch(/prompt/);
});

test('a search leaves what was measured alone as it was: seconds, bits per byte', async () => {
  onTestFinished(() => void vi.unstubAllGlobals());
  vi.stubGlobal('navigator', {});
  vi.stubGlobal('addEventListener', () => undefined);
  vi.stubGlobal('removeEventListener', () => undefined);
  const studio = createStudio(fixtureWorker());
  const text = 'a lamp by the hinge '.repeat(500);
  const texts = ready.measure.texts.map((own) => ({ ...own, text }));
  studio.store.setState({ ...ready, measure: { ...ready.measure, texts } });
  const told = () =>
    [...studio.store.getState().measure.cells].flatMap(([key, cell]) =>
      'blocks' in cell ? [[key, { seconds: cell.seconds, bitsPerByte: cell.bitsPerByte }] as const] : [],
    );
  await measure(studio);
  const alone = told();
  expect(alone.length).toBeGreaterThan(3);
  expect(alone.every(([, { seconds, bitsPerByte }]) => seconds > 0 && bitsPerByte !== null)).toBe(true);
  await find(studio, BEST_STEPS);
  expect(studio.store.getState().measure.cells.size).toBeGreaterThan(alone.length);
  expect(told()).toEqual(expect.arrayContaining(alone));
});

test('quick scores the beginning up to a whole word; short and whole texts are scored as they stand', () => {
  const text = 'a lamp by the hinge '.repeat(500);
  const quick = scoredText(text, 'quick');
  expect(text.startsWith(quick)).toBe(true);
  expect(quick.length).toBeLessThanOrEqual(QUICK_CHARACTERS);
  expect(quick.length).toBeGreaterThan(QUICK_CHARACTERS - 6);
  expect(text[quick.length]).toBe(' ');
  expect(scoredText(text, 'full')).toBe(text);
  expect(scoredText('short', 'quick')).toBe('short');
});

test('a word that ends exactly at the limit is kept', () => {
  const word = `${'x'.repeat(QUICK_CHARACTERS - 3)} yz`;
  expect(scoredText(`${word} and more`, 'quick')).toBe(word);
});

test('a text without spaces is cut between characters', () => {
  const quick = scoredText('𝄞'.repeat(2000), 'quick');
  expect(quick.length).toBe(QUICK_CHARACTERS);
  expect(quick.isWellFormed()).toBe(true);
  expect(scoredText(`x${'𝄞'.repeat(2000)}`, 'quick').isWellFormed()).toBe(true);
});

test('of conversations whole ones are scored', () => {
  const line = conversationLine([{ role: 'user', content: 'word '.repeat(100) }]);
  const quick = scoredText(Array(20).fill(line).join('\n'), 'quick');
  expect(quick).toBe(`${line}\n${line}`);
  const long = conversationLine([{ role: 'user', content: 'word '.repeat(1000) }]);
  expect(scoredText(`${long}\n${line}`, 'quick')).toBe(long);
});
