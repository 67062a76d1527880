import { afterEach, expect, test, vi } from 'vitest';
import { page, userEvent } from 'vitest/browser';
import { startStudio } from './start';
import type { Studio, StudioWorker } from './state/studio';
import { waitFor } from './wait-for.test.support';
import { fixtureWorker } from './worker.test.fixture';

let running: { studio: Studio; stop(): void; element: HTMLElement } | undefined;

afterEach(() => {
  running?.stop();
  running?.element.remove();
  running = undefined;
  localStorage.clear();
});

/** Opens the Evaluate tab with one text chosen. Numbers are kept for the next visit: every test has its own densities. */
async function open(densities: string, change: Partial<StudioWorker> = {}) {
  await page.viewport(1440, 900);
  const element = document.createElement('div');
  document.body.append(element);
  running = { ...startStudio({ ...fixtureWorker(), ...change }, element), element };
  await expect.element(page.getByText(/^Ready:/)).toBeVisible();
  await page.getByRole('tab', { name: /^Evaluate/ }).click();
  const texts = page.getByRole('group', { name: 'Texts to measure on' });
  for (const name of ['common', 'harbour', 'workshop']) {
    await texts.getByRole('button', { name, exact: true }).click();
  }
  await page.getByLabelText('Densities').fill(densities);
  return running.studio;
}

const sweep = () => page.getByRole('button', { name: 'Sweep', exact: true });
const point = () => page.getByRole('slider', { name: /Point of the density sweep/ });
const idle = (studio: Studio) => waitFor(() => expect(studio.store.getState().job).toBeNull());

test('one call measures every point; the best is marked and goes into the recipe', async () => {
  const evaluateMany = vi.fn(fixtureWorker().evaluateMany);
  const studio = await open('0.11, 0.47, 0.83', { evaluateMany });
  await sweep().click();
  await idle(studio);
  expect(evaluateMany).toHaveBeenCalledTimes(1);
  const targets = evaluateMany.mock.calls[0]?.[0].targets ?? [];
  // two methods at three densities, and the base to compare with
  expect(targets).toHaveLength(7);
  expect(targets.at(-1)).toEqual({ model: 'samples/base' });
  await expect.element(point()).toHaveAttribute('aria-valuetext', expect.stringMatching(/, the best$/));
  await expect.element(sweep()).toHaveAttribute('aria-disabled', 'true');
  // the table has the same numbers, the best among them
  await page.getByText('The numbers as a table').click();
  await expect
    .element(page.getByRole('button', { name: /^Use .* with density .*, the best$/ }))
    .toBeVisible();
  const numbers = document.querySelectorAll('.sweep-table td');
  expect(numbers).toHaveLength(6);
  const least = Math.min(...[...numbers].map((td) => Number(td.textContent)));
  expect(Number(document.querySelector('.sweep-table [data-best]')?.textContent)).toBe(least);

  const before = studio.store.getState().recipe;
  await page.getByRole('button', { name: 'Use this density' }).click();
  const after = studio.store.getState().recipe;
  const words = String(document.querySelector('.sweep-plot')?.getAttribute('aria-valuetext'));
  const density = Number(/density ([\d.]+)/.exec(words)?.[1]);
  expect([0.11, 0.47, 0.83]).toContain(density);
  expect(after.contributors.map((c) => c.parameters.density)).toEqual([density, density, density]);
  expect(after).not.toEqual(before);
});

test('arrow keys go from point to point, and any of them can be taken', async () => {
  const studio = await open('0.13, 0.49, 0.81');
  await sweep().click();
  await idle(studio);
  await expect.element(point()).toBeVisible();
  (document.querySelector('.sweep-plot') as HTMLElement).focus();
  await userEvent.keyboard('{Home}');
  await expect.element(point()).toHaveAttribute('aria-valuenow', '0.13');
  await userEvent.keyboard('{ArrowRight}');
  await expect.element(point()).toHaveAttribute('aria-valuenow', '0.49');
  await userEvent.keyboard('{End}{ArrowRight}');
  await expect.element(point()).toHaveAttribute('aria-valuenow', '0.81');
  const words = () => document.querySelector('.sweep-plot')?.getAttribute('aria-valuetext') ?? '';
  await userEvent.keyboard('{ArrowUp}{ArrowDown}');
  expect(words()).toContain('density 0.81');
  await page.getByRole('button', { name: 'Use this density' }).click();
  expect(studio.store.getState().recipe.contributors[0]?.parameters.density).toBe(0.81);
});

test('what cannot be swept says why', async () => {
  const studio = await open('0.5');
  await expect.element(page.getByText('Write at least two densities.').first()).toBeVisible();
  await expect.element(sweep()).toHaveAttribute('aria-disabled', 'true');
  await page.getByLabelText('Densities').fill('0.12, 0.48');
  for (const box of document.querySelectorAll<HTMLInputElement>('.sweep-method input:checked')) box.click();
  await expect.element(page.getByText('Choose a method first.').first()).toBeInTheDocument();
  expect(studio.store.getState().evaluation.sweep.methods).toEqual([]);
});
