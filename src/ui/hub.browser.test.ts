import { afterEach, expect, test, vi } from 'vitest';
import { page, userEvent } from 'vitest/browser';
import { AmalgamError } from '../errors';
import type { HubWait } from '../reports/push';
import { closeStudio, openStudio, openTies, show, waitFor } from './open-studio.test.support';
import { editRecipe, type StudioWorker, setView } from './state/studio';
import { fixtureWorker } from './worker.test.fixture';

afterEach(closeStudio);

test('a Hub model is searched, pinned at a revision and added; the token goes to the engine only', async () => {
  const base = fixtureWorker();
  const openHub = vi.spyOn(base, 'openHub');
  const setHub = vi.spyOn(base, 'setHub');
  const { studio } = await openStudio({}, { openHub, setHub });
  await page.getByRole('button', { name: '+ add' }).click();
  await page.getByRole('tab', { name: 'Hugging Face Hub' }).click();
  await page.getByText(/Access token and hub/).click();
  await page.getByLabelText('Token', { exact: true }).fill('hf_secret');
  await userEvent.keyboard('{Enter}');
  await expect.element(page.getByText(/token set/)).toBeVisible();
  expect(setHub).toHaveBeenCalledWith({ token: 'hf_secret' });
  await page.getByLabelText('Search the Hub').fill('example/SmolLM2-135M-kitchen-lora@v2');
  await page.getByRole('button', { name: 'Add: example/SmolLM2-135M-kitchen-lora' }).click();
  // what is added takes the place of the untouched sample
  await waitFor(() => expect(studio.store.getState().recipe.contributors).toHaveLength(1));
  expect(openHub.mock.calls[0]![0]).toBe('example/SmolLM2-135M-kitchen-lora@v2');
  expect(JSON.stringify(studio.store.getState())).not.toContain('hf_secret');
});

test('what a hub is asked ends by its button, with its dialog or form, and with the card it was asked for', async () => {
  const asked: AbortSignal[] = [];
  /** A hub that never answers. */
  const silent = (...args: unknown[]) => {
    const signal = args.at(-1) as AbortSignal;
    asked.push(signal);
    return new Promise<never>((_, reject) =>
      signal.addEventListener('abort', () => reject(new AmalgamError('Canceled', 'Canceled.', ''))),
    );
  };
  const { studio } = await openStudio(
    {},
    { openHub: silent, publishedRecipe: silent, openDataset: silent, pushTarget: silent },
  );
  const button = (name: string) => page.getByRole('button', { name, exact: true });
  /** Waits until the hub is asked, ends it, and waits until it is. */
  const ends = async (end: () => Promise<unknown>) => {
    await waitFor(() => expect(asked).toHaveLength(1));
    expect(asked[0]!.aborted).toBe(false);
    await end();
    await waitFor(() => expect(asked[0]!.aborted).toBe(true));
    asked.length = 0;
  };

  setView(studio, { dialog: 'contributor' });
  await page.getByRole('tab', { name: 'Hugging Face Hub' }).click();
  await page.getByLabelText('Search the Hub').fill('example/huge');
  await button('Add: example/huge').click();
  await ends(() => button('Cancel: example/huge').click());
  await button('Add: example/huge').click();
  await expect.element(button('Done')).toHaveAttribute('aria-disabled', 'true');
  await page.getByRole('tab', { name: 'Sample' }).click();
  await ends(() => button('Close').click());
  await expect.element(page.getByText('example/huge was not opened.').last()).toBeVisible();

  const { recipe } = studio.store.getState();
  const ref = `example/huge@${'0'.repeat(40)}`;
  editRecipe(studio, (r) => ({ ...r, contributors: [{ ...r.contributors[0]!, ref }] }));
  await ends(async () => editRecipe(studio, () => recipe));
  expect(studio.store.getState().unopened).toEqual({});
  expect(studio.store.getState().opening).toEqual([]);

  setView(studio, { dialog: 'hub' });
  await page.getByRole('textbox', { name: 'Merge on the Hub' }).fill('example/merge');
  await button('Open its recipe').click();
  await ends(() => button('Cancel').click());
  await button('Open its recipe').click();
  await ends(async () => setView(studio, { dialog: null }));

  location.hash = '#hub=example/merge';
  await expect.element(page.getByText('Opening the recipe of example/merge…')).toBeVisible();
  await ends(() => button('Cancel').click());
  await expect.element(page.getByText('Opening the recipe of example/merge…')).not.toBeInTheDocument();

  await show('Measure');
  await button('text').click();
  await button('Dataset').click();
  await page.getByLabelText('Dataset', { exact: true }).fill('example/texts');
  await button('List files').click();
  await ends(() => button('Cancel').click());

  await button('Merge').click();
  await show('Files');
  await page.getByText('Access token and hub').click();
  await page.getByLabelText('Token').fill('hf_maker');
  await userEvent.keyboard('{Enter}');
  await button('Push').click();
  await ends(() => button('Cancel').click());
  await expect.element(button('Push')).toBeVisible();
});

const aWait = () =>
  ({
    ...{ reason: 'server', host: 'hub.test', name: 'a/b' },
    ...{ until: Date.now() + 60_000, announced: true },
  }) as HubWait;

test('a wait for the hub is shown once, whatever dialog is open', async () => {
  const { studio } = await openTies();
  await page.getByRole('button', { name: 'Merge', exact: true }).click();
  await expect.element(page.getByText(/^Merged in/).first()).toBeVisible();
  studio.store.setState({ hubWaits: [aWait()] });
  const shown = () =>
    [...document.querySelectorAll('[role="timer"]')].filter((own) => own.checkVisibility()).length;
  for (const dialog of [null, 'base', 'saved', 'report', 'palette'] as const) {
    setView(studio, { dialog });
    await waitFor(() => expect(document.querySelectorAll('.dialog')).toHaveLength(dialog ? 1 : 0));
    await waitFor(() => expect(shown(), `${dialog}`).toBe(1));
  }
});

test('a wait is given up where it is shown; a plan that was waiting can be made again', async () => {
  let fails: ((_: unknown) => void) | undefined;
  const base = fixtureWorker();
  let hangs = false;
  const plan: StudioWorker['plan'] = (...args) =>
    hangs ? new Promise<never>((_, reject) => (fails = reject)) : base.plan(...args);
  const endHubWaits = vi.fn(async () => fails!(new AmalgamError('Canceled', 'Canceled.', 'Start again.')));
  const { studio } = await openStudio({}, { plan, endHubWaits });
  hangs = true;
  editRecipe(studio, (r) => ({ ...r, seed: 7 }));
  await waitFor(() => expect(fails).toBeDefined());
  studio.store.setState({ hubWaits: [aWait()] });
  await page.getByRole('timer').getByRole('button', { name: 'Cancel' }).click();
  expect(endHubWaits).toHaveBeenCalledOnce();
  await waitFor(() => expect(studio.store.getState().plan.status).toBe('failed'));
  hangs = false;
  await show('Files');
  await page.getByRole('button', { name: 'Plan again' }).click();
  await waitFor(() => expect(studio.store.getState().plan.status).toBe('ready'));
});
