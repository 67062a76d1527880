import { afterEach, expect, test, vi } from 'vitest';
import { page, userEvent } from 'vitest/browser';
import type { GenerateReport, GenerateRequest, RunningProgress } from '../reports/evaluate';
import { closeStudio, idle, openTies, show } from './open-studio.test.support';
import { editRecipe } from './state/studio';
import { waitFor } from './wait-for.test.support';
import { holding } from './worker-running.test.fixture';

afterEach(closeStudio);

const contributorsOf = ({ target }: GenerateRequest) =>
  'recipe' in target ? target.recipe.models?.length : undefined;

test('a text that is being written goes on with the changed recipe, shows where, and is then written again, uncanceled', async () => {
  const [steered, seen] = [holding(0), holding(0)];
  const asked: GenerateRequest[] = [];
  const generate = async (request: GenerateRequest, tell: (progress: RunningProgress) => void) => {
    asked.push(request);
    const progress = { phase: 'running' as const, done: 1, total: 2, rate: 20, secondsLeft: null };
    const text = ` text ${asked.length}`;
    tell({ ...progress, text });
    // base first, then the recipe
    if (asked.length === 2) {
      await steered.gone;
      tell({ ...progress, turnSeconds: 0.01 });
      await seen.gone;
    }
    const counted = { promptTokens: 2, ids: [1], tokens: [{ text, probability: 0.5 }], tokensPerSecond: 20 };
    const report: GenerateReport = {
      ...{ text, ...counted, ended: 'length', engine: 'cpu', adapter: 'CPU', seconds: 0.1, peakBytes: 1 },
    };
    return report;
  };
  const steer = vi.fn(async () => {
    steered.letGo();
    return true;
  });
  const cancel = vi.fn(async () => {});
  const { studio } = await openTies({}, { generate, steer, cancel });
  await show('Try');
  await page.getByRole('textbox', { name: 'Prompt' }).click();
  await userEvent.keyboard('{Control>}{Enter}{/Control}');
  await waitFor(() => expect(asked).toHaveLength(2));
  editRecipe(studio, (recipe) => ({ ...recipe, contributors: recipe.contributors.slice(1) }));
  await expect.element(page.getByRole('img', { name: 'the recipe changed here' })).toBeVisible();
  await expect.element(page.getByText(/the recipe changed 1\stime on the way/)).toBeVisible();
  expect(steer).toHaveBeenCalledTimes(1);
  seen.letGo();
  await waitFor(() => expect(asked).toHaveLength(3));
  await idle(studio);
  expect(asked.map(contributorsOf)).toEqual([undefined, 3, 2]);
  expect(asked.map(({ live }) => live)).toEqual([false, true, true]);
  expect(cancel).not.toHaveBeenCalled();
  const text = () => document.querySelector('[aria-label^="A "] .written-text')?.textContent;
  await waitFor(() => expect(text()).toMatch(/^Recipe: text\s3$/));
  await expect.element(page.getByRole('img', { name: 'the recipe changed here' })).not.toBeInTheDocument();
});
