import { expect, vi } from 'vitest';
import { page } from 'vitest/browser';
import { startStudio } from './start';
import type { Studio, StudioWorker } from './state/studio';
import { TABS } from './state/tabs';
import { type FixtureOptions, fixtureWorker } from './worker.test.fixture';

let running: { studio: Studio; stop(): void; element: HTMLElement } | undefined;

/** `vi.waitFor` with the patience that a busy machine needs. */
export const waitFor: typeof vi.waitFor = (check, options = 60_000) => vi.waitFor(check, options);

/** Opens the studio on a wide page with a fake worker, contributors unfolded. @param shows text to wait for; default: the sample is planned */
export async function openStudio(
  options: FixtureOptions = {},
  change: Partial<StudioWorker> = {},
  shows: string | RegExp = /^Ready:/,
) {
  closeStudio();
  await page.viewport(1440, 900);
  const element = document.createElement('div');
  document.body.append(element);
  const worker = { ...fixtureWorker(options), ...change };
  running = { ...startStudio(worker, element), element };
  await expect.element(page.getByText(shows).first()).toBeVisible();
  for (const folded of document.querySelectorAll<HTMLElement>('.card-fold[aria-expanded="false"]'))
    folded.click();
  for (const details of document.querySelectorAll<HTMLDetailsElement>('.recipe .folded')) details.open = true;
  return { ...running, worker };
}

/** Opens the studio, and chooses TIES where the recipe has another method: each contributor has a density. */
export async function openTies(...given: Parameters<typeof openStudio>) {
  const opened = await openStudio(...given);
  await page.getByRole('combobox', { name: 'Merge method' }).selectOptions('ties');
  await expect.element(page.getByText(/^(Ready:|Merged in)/).first()).toBeVisible();
  return opened;
}

/** Opens a place of the top bar, or a tab of Merge by its name. */
export async function show(name: string): Promise<void> {
  const isTab = TABS.some(({ text }) => text === name);
  if (!isTab) return showPlace(name);
  if (document.querySelector('.tabs-bar') === null) await showPlace('Merge');
  await page.getByRole('tab', { name: new RegExp(`^${name}`) }).click();
}

async function showPlace(name: string): Promise<void> {
  // a list where there is no room for links
  if (document.querySelector('.places-select')) await page.getByLabelText('Place').selectOptions(name);
  else await page.getByRole('link', { name, exact: true }).click();
}

/** Chooses from the menu of a run, by how its name begins. */
export async function actOnRun(name: string, action: string): Promise<void> {
  await page
    .getByRole('button', { name: new RegExp(`^Actions of ${name}`) })
    .first()
    .click();
  await page.getByRole('menuitem', { name: new RegExp(`^${action}`) }).click();
}

/** Takes down the studio that is open. */
export function closeStudio(): void {
  running?.stop();
  running?.element.remove();
  running = undefined;
}

/** Waits until the engine is at no job. */
export const idle = ({ store }: Studio) => waitFor(() => expect(store.getState().job).toBeNull());

/** The files a click makes the browser save, by name. */
export function savedFiles(): Map<string, Promise<string>> {
  const saved = new Map<string, Promise<string>>();
  const blobs = new Map<string, Blob>();
  vi.spyOn(URL, 'createObjectURL').mockImplementation((blob) => {
    const url = `blob:test/${blobs.size}`;
    blobs.set(url, blob as Blob);
    return url;
  });
  vi.spyOn(HTMLAnchorElement.prototype, 'click').mockImplementation(function (this: HTMLAnchorElement) {
    saved.set(this.download, blobs.get(this.href)!.text());
  });
  return saved;
}
