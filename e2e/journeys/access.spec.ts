/** Everybody can use it: axe finds no serious issue on any tab or dialog in either theme, and the keyboard reaches all. */
import type { Page } from '@playwright/test';
import { TOOLS } from '../../src/tools';
import { TABS } from '../../src/ui/state/tabs';
import { expect, merge, openSample, seriousIssues, show, test } from './studio';

const tabs = TABS.flatMap(({ id, text }) => (id === 'recipe' ? [] : [text]));

/** Presses Tab until the focus has been everywhere; names elements that are focused invisibly or never. */
async function walkByTab(page: Page): Promise<{ stops: number; unseen: string[]; missed: string[] }> {
  await page.evaluate(() => {
    (document.activeElement as HTMLElement | null)?.blur();
    const state = { stops: new Set<Element>(), unseen: [] as string[] };
    Object.assign(window, { walk: state });
    document.addEventListener('focusin', ({ target }) => {
      const at = target as HTMLElement;
      // a group hands the focus on to its member
      if (document.activeElement !== at || state.stops.has(at)) return;
      state.stops.add(at);
      const rings = (e: Element | null): boolean =>
        e !== null &&
        (getComputedStyle(e).outlineStyle !== 'none' || getComputedStyle(e).boxShadow !== 'none');
      const shown =
        at.matches(':focus-visible') &&
        (rings(at) ||
          rings(at.closest(':focus-within:not(body)')) ||
          rings(at.parentElement) ||
          rings(at.nextElementSibling));
      if (!shown) state.unseen.push(at.outerHTML.slice(0, 160));
    });
  });
  // redrawing can take the focus back over some known elements
  for (let before = -1, known = 0; known < 2; ) {
    for (let k = 0; k < 15; k++) await page.keyboard.press('Tab');
    const now = await page.evaluate(
      () => (window as unknown as { walk: { stops: Set<Element> } }).walk.stops.size,
    );
    known = now === before ? known + 1 : 0;
    before = now;
  }
  return page.evaluate(() => {
    const { stops, unseen } = (window as unknown as { walk: { stops: Set<Element>; unseen: string[] } }).walk;
    const controls = document.querySelectorAll<HTMLElement>(
      'button, a[href], input:not([tabindex="-1"]), select, textarea, summary, [role=slider], [role=grid], [role=tab], [role=radio], [role=switch]',
    );
    // one stop of a group whose members the arrow keys reach
    const group = (e: Element) =>
      e.closest('[role=tablist], [role=radiogroup], [role=group], [role=grid], .toolbar');
    const missed = [...controls].filter(
      (e) =>
        e.checkVisibility({ visibilityProperty: true }) &&
        !(e as HTMLButtonElement).disabled &&
        !stops.has(e) &&
        !e.querySelector('[tabindex]') &&
        ![...stops].some((s) => group(e) !== null && group(s) === group(e)),
    );
    return { stops: stops.size, unseen, missed: missed.map((e) => e.outerHTML.slice(0, 160)) };
  });
}

test('every control is reached and seen by keyboard; no serious issue on any tab and in any dialog, light and dark', async ({
  page,
}) => {
  await openSample(page);
  for (const tab of ['Layers', 'Measure', 'Files']) {
    await show(page, tab);
    // the parts of a tab arrive when it is opened
    await expect(page.getByRole('tabpanel').getByRole('button').first()).toBeVisible();
    const { stops, unseen, missed } = await walkByTab(page);
    expect(stops).toBeGreaterThan(30);
    expect(unseen, tab).toEqual([]);
    expect(missed, tab).toEqual([]);
  }
  await page.getByRole('tab', { name: 'Files' }).focus();
  await page.keyboard.press('Home');
  await expect(page.getByRole('tab', { name: 'Layers' })).toHaveAttribute('aria-selected', 'true');
  await page.keyboard.press('ArrowRight');
  await expect(page.getByRole('tab', { name: 'Try' })).toHaveAttribute('aria-selected', 'true');

  await merge(page);
  const issues: string[] = [];
  for (const name of [...tabs, ...TOOLS.map(({ text }) => text)]) {
    await show(page, name);
    await expect(page.locator('.screen[aria-busy=true]')).toHaveCount(0);
    // the frame around the tabs stays the same
    issues.push(...(await seriousIssues(page, name === 'Layers' ? '.workbench' : '.main')));
  }
  await show(page, 'Layers');
  await page.getByRole('button', { name: 'Details', exact: true }).click();
  await expect(page.getByRole('dialog')).toBeVisible();
  issues.push(...(await seriousIssues(page, '.dialog')));
  await page.keyboard.press('Escape');
  for (const open of ['Examples', 'Save', '+ add']) {
    await page.getByRole('button', { name: open, exact: true }).click();
    await expect(page.getByRole('dialog')).toBeVisible();
    issues.push(...(await seriousIssues(page, '.dialog')));
    await page.keyboard.press('Escape');
    await expect(page.getByRole('dialog')).toBeHidden();
    await expect(page.getByRole('button', { name: open, exact: true })).toBeFocused();
  }
  await page.getByRole('radio', { name: 'YAML' }).click();
  await page.getByRole('textbox', { name: 'Recipe as YAML' }).fill('lambada: 1');
  issues.push(...(await seriousIssues(page, '.recipe')));
  expect(issues).toEqual([]);
});

test('a page that does not arrive whole says so, and what to do', async ({ page }) => {
  await page.route('**/assets/start-*.js', (route) => route.abort());
  await page.goto('/');
  await expect(page.getByRole('heading', { name: 'Amalgam could not start' })).toBeVisible();
  await page.unroute('**/assets/start-*.js');
  await page.getByRole('button', { name: 'Try again' }).click();
  await expect(page.getByRole('button', { name: 'Merge', exact: true })).toBeVisible();
});
