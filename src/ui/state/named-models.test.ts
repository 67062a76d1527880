import { expect, test, vi } from 'vitest';
import { AmalgamError } from '../../errors';
import { fixtureWorker } from '../worker.test.fixture';
import { mergeGate } from './merge-gate';
import { openSample } from './models';
import { openAgain, openFolderAs, openNamedHub, openSampleFamily, watchNamedModels } from './named-models';
import { addContributor, emptyRecipe, setBase } from './recipe-state';
import { createStudio, editRecipe } from './studio';

const COMMIT = '0123abcd0123abcd0123abcd0123abcd0123abcd';

function started(worker = fixtureWorker()) {
  const asked = vi.spyOn(worker, 'openHub');
  const studio = createStudio(worker);
  watchNamedModels(studio);
  return { studio, asked, unopened: () => studio.store.getState().unopened };
}

test('a folder of this computer is never asked of a hub, not even one called as on the Hub', async () => {
  const { studio, asked, unopened } = started();
  editRecipe(studio, () => ({
    ...addContributor(setBase(emptyRecipe, 'owner/name'), 'my-lora'),
    origins: { 'owner/name': { kind: 'local', was: { bytes: 1, headers: 'h' } } },
  }));
  await vi.waitFor(() => expect(unopened()['owner/name']).toEqual({ state: 'closed', saved: false }));
  expect(unopened()['my-lora']).toEqual({ state: 'unknown' });
  expect(asked).not.toHaveBeenCalled();
  expect(mergeGate(studio.store.getState())).toMatchObject({ open: false });
});

test('a model of the Hub at a commit opens by itself; what went wrong is said, and tried again', async () => {
  const { studio, asked, unopened } = started();
  asked.mockRejectedValueOnce(new AmalgamError('Offline', 'No connection.', 'Look at the network.'));
  const ref = `owner/name@${COMMIT}`;
  editRecipe(studio, () => setBase(emptyRecipe, ref));
  await vi.waitFor(() =>
    expect(unopened()[ref]).toMatchObject({ state: 'failed', error: { code: 'Offline' } }),
  );
  openAgain(studio, ref);
  expect(unopened()[ref]).toEqual({ state: 'opening' });
  expect(asked).toHaveBeenCalledTimes(2);
});

test('a sample that does not exist is said to be none, before the family is open and after', async () => {
  const { studio, unopened } = started();
  editRecipe(studio, () => setBase(emptyRecipe, 'samples/nothere'));
  await openSampleFamily(studio);
  const none = { state: 'failed', error: { code: 'NotFound' } };
  expect(unopened()['samples/nothere']).toMatchObject(none);
  editRecipe(studio, () => setBase(emptyRecipe, 'samples/neither'));
  expect(unopened()['samples/neither']).toMatchObject(none);
});

test('a name in a text is asked of the Hub after a yes, and then is the name at its commit', async () => {
  const { studio, unopened } = started();
  editRecipe(studio, () => setBase(emptyRecipe, 'owner/name'));
  expect(unopened()['owner/name']).toEqual({ state: 'unknown' });
  await openNamedHub(studio, 'owner/name');
  expect(studio.store.getState().recipe.base).toBe('owner/name@0123abcd');
  await vi.waitFor(() => expect(unopened()).toEqual({}));
});

test('a folder that is opened again has the name it has in the recipe', async () => {
  const worker = fixtureWorker();
  const open = vi.spyOn(worker, 'openLocal');
  const { studio } = started(worker);
  const files = [{ path: 'kitchen/config.json', file: new File([], 'config.json') }];
  await openFolderAs(studio, 'loras/kitchen', { files, handles: [] });
  await openFolderAs(studio, 'kitchen', { files, handles: [] });
  expect(open.mock.calls.map(([given]) => given[0]!.path)).toEqual([
    'loras/kitchen/config.json',
    'kitchen/config.json',
  ]);
});

test('the sample opens once more where it did not come', async () => {
  const worker = fixtureWorker();
  const { studio, unopened } = started(worker);
  await openSample(studio, true);
  studio.store.setState({ models: [] });
  expect(Object.values(unopened()).map(({ state }) => state)).toEqual(Array(4).fill('opening'));
  openAgain(studio, 'samples/base');
  await vi.waitFor(() => expect(unopened()).toEqual({}));
});
