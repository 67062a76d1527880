import { expect } from 'vitest';
import { page } from 'vitest/browser';
import { startStudio } from './start';
import type { Studio, StudioWorker } from './state/studio';
import { waitFor } from './wait-for.test.support';
import { type FixtureOptions, fixtureWorker } from './worker.test.fixture';

let running: { studio: Studio; stop(): void; element: HTMLElement } | undefined;

/** Opens the studio on a wide page with a fake worker. @param shows text to wait for; default: the sample is planned */
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
  await expect.element(page.getByText(shows)).toBeVisible();
  return { ...running, worker };
}

/** Takes down the studio that is open. */
export function closeStudio(): void {
  running?.stop();
  running?.element.remove();
  running = undefined;
}

/** Waits until the engine is at no job. */
export const idle = ({ store }: Studio) => waitFor(() => expect(store.getState().job).toBeNull());
