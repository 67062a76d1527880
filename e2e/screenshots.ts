/**
 * Takes pictures into test-results/screenshots, and again those of docs/screenshots: a newcomer's way from opening the page to the best method, the first five minutes
 * of a hobbyist and of a researcher (docs/studio.md), every tab after a merge of the sample, at three widths, and Layers of
 * fake models, large and of experts; light and dark. On a slow machine it takes long, and gives up nowhere.
 *
 *     npm run screenshots
 */
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium, type Page } from 'playwright';
import { build, preview } from 'vite';
import { TOOLS } from '../src/tools';
import { TABS } from '../src/ui/state/tabs';
import { giveFolder } from './given-folder';
import { CHROMIUM_ARGS, findChromium, SWIFTSHADER_ARGS } from './setup-chromium.mjs';

/** Those that the docs show stand in the repository, all others are for whoever changes the studio. */
const FOLDER = join(import.meta.dirname, '../test-results/screenshots');
const DOCS = join(import.meta.dirname, '../docs/screenshots');
const IN_DOCS = new Set(readdirSync(DOCS));
const SIZES = [
  { width: 1440, height: 900 },
  { width: 1024, height: 768 },
  { width: 390, height: 844 },
];
/** The newcomer's pictures stand side by side in the README. */
const WALK = { width: 1280, height: 800 };
/** Layers: as the others, and on a small laptop. */
const LAYERS_SIZES = [SIZES[0]!, { width: 1280, height: 720 }, SIZES[2]!];
/** Models of the fake worker, and how many contributors they have. */
const PRETENDED = [
  { name: 'layers-32', page: 'layers=32', contributors: 4 },
  { name: 'layers-experts', page: 'layers=24&experts=64', contributors: 3 },
];
/** Widths below this have a narrow bar (styles). */
const NARROW = 760;
const PRETENDED_PAGE = 'e2e/bench/interaction.html';

/** Patience with one step, in milliseconds: all methods are measured on a processor that may be busy. */
const PATIENCE = 1_800_000;

const outDir = mkdtempSync(join(tmpdir(), 'amalgam-screenshots-'));
const root = join(import.meta.dirname, '..');
await build({
  root,
  logLevel: 'warn',
  build: { outDir, rolldownOptions: { input: [join(root, 'index.html'), join(root, PRETENDED_PAGE)] } },
});
const server = await preview({ build: { outDir }, preview: { host: '127.0.0.1', port: 4394 } });
const url = server.resolvedUrls?.local[0] ?? 'http://127.0.0.1:4394/';
mkdirSync(FOLDER, { recursive: true });
const executablePath = findChromium();
try {
  for (const colorScheme of ['light', 'dark'] as const) {
    for (const model of PRETENDED) {
      await inBrowser(colorScheme, (page) => pretended(page, model, colorScheme));
    }
    await inBrowser(colorScheme, (page) => sample(page, colorScheme));
  }
  for (const way of [hobbyist, researcher, effects]) await inBrowser('light', way);
} finally {
  await server.close();
  rmSync(outDir, { recursive: true, force: true });
}

/** A browser with a profile of its own. */
async function inBrowser(colorScheme: 'light' | 'dark', use: (page: Page) => Promise<void>): Promise<void> {
  const profile = mkdtempSync(join(tmpdir(), 'amalgam-screenshots-profile-'));
  const context = await chromium.launchPersistentContext(profile, {
    colorScheme,
    reducedMotion: 'reduce',
    args: [...CHROMIUM_ARGS, ...SWIFTSHADER_ARGS],
    ...(executablePath ? { executablePath } : {}),
  });
  context.setDefaultTimeout(PATIENCE);
  await use(context.pages()[0] ?? (await context.newPage()));
  await context.close();
  rmSync(profile, { recursive: true, force: true });
}

/** Two predicted runs of a fake model side by side, and the experts of one projection. */
async function pretended(
  page: Page,
  { name, page: query, contributors }: (typeof PRETENDED)[number],
  colorScheme: 'light' | 'dark',
): Promise<void> {
  await page.setViewportSize(SIZES[0]!);
  await page.goto(`${url}${PRETENDED_PAGE}?${query}`);
  await page.getByText(/^Ready:/).waitFor();
  if (contributors === 4) await page.evaluate(() => window.addFourth());
  const offer = page.getByRole('button', { name: 'Measure the changes now' });
  const measured = page.getByRole('gridcell', { name: /about/ });
  await offer.or(measured).first().waitFor();
  if (await offer.isVisible()) await offer.click();
  await page.waitForFunction((count) => {
    const { plan, deltaStatistics } = window.studio.store.getState();
    return (
      plan.status === 'ready' &&
      plan.report?.contributors.length === count &&
      deltaStatistics.status === 'ready'
    );
  }, contributors);
  await page.getByLabel('Add a run').selectOption('dare_ties');
  await page.getByLabel('Metric').selectOption('outputChange');
  for (const size of LAYERS_SIZES) {
    await page.setViewportSize(size);
    await show(page, 'Layers');
    await picture(page, `${name}-${size.width}-${colorScheme}`);
  }
  if (!query.includes('experts')) return;
  await page.setViewportSize(SIZES[0]!);
  await page
    .getByRole('gridcell', { name: /layer 3, mlp\.experts/ })
    .first()
    .click();
  await picture(page, `${name}-open-1440-${colorScheme}`);
}

/** Every tab after a merge of the sample. */
async function sample(page: Page, colorScheme: 'light' | 'dark'): Promise<void> {
  await work(page, colorScheme);
  await show(page, 'Layers');
  await page.getByLabel('Add a run').selectOption('dare_linear');
  await page
    .getByRole('gridcell', { name: /layer 3, mlp\.down_proj/ })
    .first()
    .click();
  for (const size of SIZES) {
    await page.setViewportSize(size);
    for (const { id, text } of [...TABS, ...TOOLS]) {
      if (id === 'recipe' && size.width >= NARROW) continue;
      await show(page, text);
      if (id === 'files') await filesRead(page);
      await picture(page, `${id}-${size.width}-${colorScheme}`);
    }
  }
  for (const size of LAYERS_SIZES.slice(1, 2)) {
    await page.setViewportSize(size);
    await show(page, 'Layers');
    await picture(page, `layers-${size.width}-${colorScheme}`);
  }
  await page.setViewportSize(SIZES[0]!);
  await show(page, 'Layers');
  await page.getByRole('radio', { name: 'YAML' }).click();
  await page.getByRole('textbox', { name: 'Recipe as YAML' }).waitFor();
  await picture(page, `yaml-1440-${colorScheme}`);
  await page.getByRole('radio', { name: 'Form' }).click();
  await page.getByRole('button', { name: 'Examples' }).click();
  await page.getByRole('button', { name: /^In two stages/ }).waitFor();
  await picture(page, `examples-1440-${colorScheme}`);
}

/** Two LoRAs and a base from a folder: opened, merged, tried, saved. */
async function hobbyist(page: Page): Promise<void> {
  await page.setViewportSize(WALK);
  await giveFolder(page, 'mine', ['base', 'harbour', 'kitchen'], url);
  await page.getByRole('button', { name: 'Open models or LoRAs…' }).click();
  await page.getByText('mine/base').first().waitFor();
  await page.getByText('workshop').waitFor({ state: 'detached' });
  await page.getByText('matches base').nth(1).waitFor();
  await page.getByText(/^Ready:/).waitFor();
  await picture(page, 'hobbyist-1-opened');
  await show(page, 'Measure');
  await page.getByRole('button', { name: 'text', exact: true }).click();
  await page.getByRole('button', { name: 'Paste text' }).click();
  await page
    .getByLabel('Text', { exact: true })
    .fill(
      'Recipe: Leek Soup with Potatoes\nFor four people. Takes about half an hour.\nYou need: three leeks, two handfuls of ' +
        'potatoes, a spoonful of butter, a pinch of salt and a cup of cream.\nWash the leeks and cut them into rings.',
    );
  await page.getByLabel('Name of the text').fill('soup');
  await page.getByRole('button', { name: 'Add text' }).click();
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Merge', exact: true }).click();
  await page.getByText(/^Merged in/).waitFor();
  await page.getByRole('button', { name: 'Try', exact: true }).click();
  await page
    .getByText(/60\stokens in/)
    .nth(1)
    .waitFor();
  await picture(page, 'hobbyist-2-better');
  await show(page, 'Files');
  await filesRead(page);
  await picture(page, 'hobbyist-3-files');
}

/** The sample: two runs side by side, every method measured, the recipe as mergekit reads it. */
async function researcher(page: Page): Promise<void> {
  await page.setViewportSize(WALK);
  await page.goto(url);
  await page.getByText(/^Ready:/).waitFor();
  await page
    .getByRole('gridcell', { name: /about .* within/ })
    .first()
    .waitFor();
  await page.getByLabel('Add a run').selectOption('dare_linear');
  await page.getByText('B − A').first().waitFor();
  await picture(page, 'researcher-1-runs');
  await show(page, 'Measure');
  await page.getByLabel('Time that trying may take').selectOption('600');
  await page.getByRole('button', { name: 'Try all methods' }).click();
  await page.getByText(/(of|among) \d+ merges/).waitFor();
  await page.getByRole('button', { name: 'Stop', exact: true }).waitFor({ state: 'detached' });
  await picture(page, 'researcher-2-benchmark');
  await show(page, 'Files');
  await page.getByRole('radio', { name: 'YAML' }).click();
  const text = page.getByRole('textbox', { name: 'Recipe as YAML' });
  await text.waitFor();
  await text.fill((await text.inputValue()).replace('normalize: true', 'normalise: true'));
  await page
    .getByText(/Did you mean normalize/)
    .first()
    .waitFor();
  await picture(page, 'researcher-3-yaml');
}

/** TIES of the sample: what it leaves at the base, and what each change does to a text. */
async function effects(page: Page): Promise<void> {
  await page.setViewportSize(WALK);
  await page.goto(url);
  await page.getByText(/^Ready:/).waitFor();
  await page.getByRole('combobox', { name: 'Merge method' }).selectOption('ties');
  await page.getByRole('button', { name: 'Merge', exact: true }).click();
  await page.getByText(/^Merged in/).waitFor();
  await show(page, 'Try');
  await page.getByRole('button', { name: 'Generate', exact: true }).click();
  await page
    .getByText(/60\stokens in/)
    .nth(1)
    .waitFor();
  await show(page, 'Layers');
  await page.getByLabel('Metric').selectOption('mergedSparsity');
  await picture(page, 'effects-1-sparsity');
  await page.getByLabel('Metric').selectOption('modelEffect');
  await page.getByText(/^On “/).waitFor();
  await picture(page, 'effects-2-models');
}

/** Merges, measures, writes, compares and collapses; on its way, in the light, the newcomer's pictures. */
async function work(page: Page, colorScheme: 'light' | 'dark'): Promise<void> {
  const walk = async (name: string) => {
    if (colorScheme === 'light') await picture(page, `walk-${name}`);
  };
  await page.setViewportSize(WALK);
  await page.goto(url);
  await page.getByText(/^Ready:/).waitFor();
  await page
    .getByRole('gridcell', { name: /about .* within/ })
    .first()
    .waitFor();
  await walk('1-open');
  await page.getByRole('button', { name: 'Merge', exact: true }).click();
  await page.getByText(/^Merged in/).waitFor();
  await walk('2-merged');
  await show(page, 'Files');
  await page.getByRole('button', { name: 'Download as .zip' }).waitFor();
  await walk('3-files');
  await show(page, 'Measure');
  // on a slow machine too
  await page.getByLabel('Time that trying may take').selectOption('600');
  await page.getByRole('button', { name: 'Try all methods' }).click();
  const stop = page.getByRole('button', { name: 'Stop', exact: true });
  await stop.waitFor();
  await stop.waitFor({ state: 'detached' });
  await walk('4-best');
  await page.setViewportSize(SIZES[0]!);
  await show(page, 'Try');
  await page.getByRole('button', { name: 'Generate', exact: true }).click();
  await page
    .getByText(/60\stokens in/)
    .nth(1)
    .waitFor();
  await show(page, 'Difference');
  await page.getByRole('button', { name: 'Measure difference', exact: true }).click();
  await page.getByText(/^56 tensors compared/).waitFor();
  await show(page, 'Collapse');
  await page.getByRole('button', { name: 'Measure layers' }).click();
  await page.getByText(/^Layer \d goes/).waitFor();
  await show(page, 'LoRA');
  await page.getByRole('button', { name: 'Inspect', exact: true }).click();
  await page.getByText('What a rank keeps').waitFor();
  await page.getByRole('radio', { name: 'Two models' }).click();
  await page.getByRole('button', { name: 'Extract LoRA', exact: true }).click();
  await page.locator('.costs > div', { hasText: 'Error left' }).waitFor();
}

/** Opens a place, or a tab of Merge by its name; where there is little room, places are a list. */
async function show(page: Page, name: string): Promise<void> {
  const isTab = TABS.some(({ text }) => text === name);
  const place = isTab ? 'Merge' : name;
  // where the bar is narrow its places are a list; a page of a new width has it a moment later
  if (page.viewportSize()!.width < NARROW)
    await page.getByLabel('Place', { exact: true }).selectOption({ label: place });
  else await page.getByRole('link', { name: place, exact: true }).click();
  if (isTab) await page.getByRole('tab', { name: new RegExp(`^${name}`) }).click();
}

/** The sizes of the files are known: until then they cannot be downloaded. */
async function filesRead(page: Page): Promise<void> {
  await page.locator('button:not([aria-disabled="true"])', { hasText: 'Download as .zip' }).waitFor();
}

/** The page from the top of what it shows, at rest. */
async function picture(page: Page, name: string): Promise<void> {
  await page.evaluate(() => {
    for (const part of document.querySelectorAll('.tab-content, .recipe, .inspector')) part.scrollTop = 0;
  });
  await page.mouse.move(0, 0);
  await page.waitForTimeout(500);
  const file = `${name}.png`;
  await page.screenshot({ path: join(FOLDER, file) });
  if (IN_DOCS.has(file)) copyFileSync(join(FOLDER, file), join(DOCS, file));
}
