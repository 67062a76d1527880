import { expect, test } from 'vitest';
import type { ModelInfo } from '../../reports/models';
import { finetune } from '../worker.test.fixture';
import { isPinnedName, namedModels, withOpened } from './model-origins';
import { addContributor, emptyRecipe, setBase, setEnabled } from './recipe-state';

const COMMIT = '0123456789abcdef0123456789abcdef01234567';
const model = (ref: string, change: Partial<ModelInfo> = {}) =>
  finetune(ref, { bytes: 2, headers: `headers of ${ref}`, ...change });
const recipe = addContributor(setBase(emptyRecipe, 'owner/base'), 'owner/tuned');

test('only a name at a commit is one that a hub alone can have', () => {
  expect(isPinnedName(`owner/base@${COMMIT}`)).toBe(true);
  expect(isPinnedName('owner/base')).toBe(false);
  expect(isPinnedName('owner/base@main')).toBe(false);
});

test('the named models are base and contributors, adapters apart from what they sit on', () => {
  const all = addContributor(recipe, 'owner/other+loras/a');
  expect(namedModels(all, true)).toEqual(['owner/base', 'owner/tuned', 'owner/other', 'loras/a']);
  expect(namedModels(setEnabled(all, 'owner/tuned', false), false)).not.toContain('owner/tuned');
});

test('a model of the Hub gets the name it was opened under, a folder of that name never', () => {
  const pins = { 'owner/base': `owner/base@${COMMIT}` };
  const hub = model(`owner/base@${COMMIT}`, { origin: 'hub' });
  const opened = withOpened(recipe, {}, [hub], pins);
  expect(opened.base).toBe(`owner/base@${COMMIT}`);
  expect(opened.origins).toEqual({ [`owner/base@${COMMIT}`]: { kind: 'hub' } });

  const local = { kind: 'local', was: { bytes: 2, headers: 'h' } } as const;
  expect(withOpened(recipe, { 'owner/base': local }, [hub], pins).base).toBe('owner/base');
  expect(withOpened(recipe, {}, [hub, model('owner/base')], pins).base).toBe('owner/base');
});

test('origins are kept when a model is no longer open, and what it was made with is not replaced', () => {
  const made = withOpened(recipe, {}, [model('owner/tuned')], {});
  expect(made.origins['owner/tuned']).toEqual({
    kind: 'local',
    was: { bytes: 2, headers: 'headers of owner/tuned' },
  });
  expect(withOpened(made, {}, [], {})).toBe(made);
  expect(withOpened(made, {}, [model('owner/tuned', { bytes: 99 })], {})).toBe(made);
});

test('an adapter that is opened later is a contributor by its own name', () => {
  const named = addContributor(setBase(emptyRecipe, 'base'), 'base+loras/a');
  const adapter = model('loras/a', { kind: 'adapter' });
  expect(withOpened(named, {}, [adapter], {}).contributors[0]?.ref).toBe('loras/a');
  expect(withOpened({ ...named, base: 'another' }, {}, [adapter], {}).contributors[0]?.ref).toBe(
    'base+loras/a',
  );
});
