import { afterEach, expect, test, vi } from 'vitest';
import { page, userEvent } from 'vitest/browser';
import { closeStudio, openTies, show, waitFor } from './open-studio.test.support';
import type { StudioWorker } from './state/studio';
import { type FixtureOptions, fixtureWorker } from './worker.test.fixture';
import { holding } from './worker-running.test.fixture';

afterEach(closeStudio);

/** Opens the studio, merges, and shows the finished output. */
async function openMerged(options: FixtureOptions = {}, change: Partial<StudioWorker> = {}) {
  const { studio } = await openTies(options, change);
  await page.getByRole('button', { name: 'Merge', exact: true }).click();
  await show('Files');
  await expect.element(page.getByRole('heading', { name: 'Push to the Hub' })).toBeVisible();
  return studio;
}

const pushButton = () => page.getByRole('button', { name: 'Push', exact: true });
const repository = () => page.getByLabelText('Repository');

async function giveToken() {
  await page.getByText('Access token and hub').click();
  await page.getByLabelText('Token').fill('hf_maker');
  await userEvent.keyboard('{Enter}');
  await expect.element(page.getByText(/^as maker/)).toBeVisible();
}

test('with a token the name is proposed; pushing shows progress and ends at a link', async () => {
  const hold = holding(1);
  const push = vi.fn(fixtureWorker({ hold }).push);
  const hubAccount = vi.fn(fixtureWorker().hubAccount);
  await openMerged({}, { push, hubAccount });
  await expect.element(pushButton()).toHaveAttribute('aria-disabled', 'true');
  await giveToken();
  expect(hubAccount).toHaveBeenCalledTimes(1);
  // another token is another account
  await page.getByLabelText('Token').fill('hf_other');
  await userEvent.keyboard('{Enter}');
  await waitFor(() => expect(hubAccount).toHaveBeenCalledTimes(2));
  await expect.element(repository()).toHaveValue('maker/kitchen-harbour-workshop-ties');
  await pushButton().click();
  await expect.element(page.getByRole('progressbar', { name: 'Pushing' })).toBeVisible();
  hold.letGo();
  await expect.element(page.getByRole('link', { name: 'maker/kitchen-harbour-workshop-ties' })).toBeVisible();
  await expect.element(page.getByText(/of a new repository/)).toBeVisible();
  const request = push.mock.calls[0]?.[0];
  expect(request).toMatchObject({ repo: 'maker/kitchen-harbour-workshop-ties', private: true, replace: [] });
  expect(request?.source).toEqual({ kind: 'downloads', name: 'kitchen-harbour-workshop-ties' });
});

test('files that are there are listed and replaced only after a yes', async () => {
  const options = { repositories: { 'maker/taken': ['config.json', 'notes.txt'] } };
  const push = vi.fn(fixtureWorker(options).push);
  await openMerged(options, { push });
  await giveToken();
  await repository().fill('maker/taken');
  await page.getByRole('radio', { name: 'Public' }).click();
  await pushButton().click();
  const list = page.getByRole('list', { name: 'Files that would be replaced' });
  await expect.element(list).toHaveTextContent('config.json');
  await expect.element(list).not.toHaveTextContent('notes.txt');
  await page.getByRole('button', { name: 'Cancel' }).click();
  expect(push).not.toHaveBeenCalled();
  await pushButton().click();
  await page.getByRole('button', { name: 'Replace these files' }).click();
  await expect.element(page.getByRole('link', { name: 'maker/taken' })).toBeVisible();
  expect(push.mock.calls[0]?.[0]).toMatchObject({ replace: ['config.json'], private: false });
});

test('it can be stopped, and a merge waits for it', async () => {
  const hold = holding(Number.POSITIVE_INFINITY);
  const studio = await openMerged({ hold });
  hold.at = 1;
  await giveToken();
  await pushButton().click();
  await expect.element(page.getByRole('button', { name: 'Stop' })).toBeVisible();
  await expect
    .element(page.getByRole('button', { name: 'Merge', exact: true }))
    .toHaveAttribute('aria-disabled', 'true');
  await page.getByRole('button', { name: 'Stop' }).click();
  await waitFor(() => expect(studio.store.getState().job).toBeNull());
  expect(studio.store.getState().push).toMatchObject({ status: 'idle', report: null, error: null });
});
