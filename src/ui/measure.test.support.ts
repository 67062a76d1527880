import { expect } from 'vitest';
import { page } from 'vitest/browser';
import { openStudio, show } from './open-studio.test.support';
import type { StudioWorker } from './state/studio';
import type { FixtureOptions } from './worker.test.fixture';

/** Opens the studio at its Measure tab, with a fake worker. */
export async function open(options: FixtureOptions = {}, change: Partial<StudioWorker> = {}) {
  const { studio } = await openStudio(options, change);
  await show('Measure');
  await expect.element(text('kitchen')).toBeVisible();
  return studio;
}

export const text = (name: string) =>
  page.getByRole('group', { name: 'Texts to measure on' }).getByRole('button', { name, exact: true });
export const button = (name: string | RegExp) =>
  page.getByRole('button', { name, exact: typeof name === 'string' });
export const measureButton = () => button(/^Measure( \d|$)/);
/** A row, with a letter before its name or without. */
export const row = (name: string) => page.getByRole('row', { name: new RegExp(`^[A-D]?\\s?${name}`) });
export const column = (name: string) => page.getByRole('columnheader', { name, exact: true });
