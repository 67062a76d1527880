import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium, type Page } from 'playwright';
import { build, preview } from 'vite';
import { TOOLS } from '../src/tools';
import { TABS } from '../src/ui/state/tabs';
import { CHROMIUM_ARGS, findChromium, SWIFTSHADER_ARGS } from './setup-chromium.mjs';

const OUT = process.argv[2]!;
const ONLY = process.argv[3];
mkdirSync(OUT, { recursive: true });
const SIZES = [
  { width: 1440, height: 900 },
  { width: 1280, height: 720 },
  { width: 390, height: 844 },
];
const outDir = mkdtempSync(join(tmpdir(), 'look-'));
const root = join(import.meta.dirname, '..');
const PAGE = 'e2e/bench/interaction.html';
await build({
  root,
  logLevel: 'warn',
  build: { outDir, rolldownOptions: { input: [join(root, 'index.html'), join(root, PAGE)] } },
});
const server = await preview({
  root,
  build: { outDir },
  preview: { host: '127.0.0.1', port: 0 },
  logLevel: 'warn',
} as never);
const url = server.resolvedUrls!.local[0]!;
async function inBrowser(use: (page: Page) => Promise<void>) {
  const profile = mkdtempSync(join(tmpdir(), 'look-profile-'));
  const context = await chromium.launchPersistentContext(profile, {
    colorScheme: 'light',
    reducedMotion: 'reduce',
    args: [...CHROMIUM_ARGS, ...SWIFTSHADER_ARGS],
    executablePath: findChromium()!,
  });
  context.setDefaultTimeout(60000);
  await context.addInitScript('globalThis.__name = (f) => f');
  const page = context.pages()[0]!;
  try {
    await use(page);
  } catch (e) {
    console.log('FAILED', String(e).slice(0, 600));
    await page.screenshot({ path: join(OUT, 'failed.png') });
  }
  await context.close();
  rmSync(profile, { recursive: true, force: true });
}
const PROPS = [
  'display',
  'position',
  'top',
  'left',
  'right',
  'bottom',
  'width',
  'height',
  'min-width',
  'max-width',
  'min-height',
  'max-height',
  'margin-top',
  'margin-right',
  'margin-bottom',
  'margin-left',
  'padding-top',
  'padding-right',
  'padding-bottom',
  'padding-left',
  'gap',
  'row-gap',
  'column-gap',
  'flex',
  'align-items',
  'align-self',
  'align-content',
  'justify-content',
  'justify-self',
  'justify-items',
  'grid-template-columns',
  'grid-template-rows',
  'grid-column',
  'grid-row',
  'order',
  'overflow-x',
  'overflow-y',
  'color',
  'background-color',
  'background-image',
  'border-top',
  'border-right',
  'border-bottom',
  'border-left',
  'border-radius',
  'font-family',
  'font-size',
  'font-weight',
  'line-height',
  'letter-spacing',
  'text-align',
  'text-decoration-line',
  'text-transform',
  'white-space',
  'overflow-wrap',
  'opacity',
  'box-shadow',
  'z-index',
  'visibility',
  'transform',
  'isolation',
  'contain',
  'cursor',
  'fill',
  'stroke',
  'stroke-width',
  'stroke-dasharray',
  'outline',
  'text-overflow',
  'list-style-type',
  'vertical-align',
  'writing-mode',
];
async function picture(page: Page, name: string, schemes: ('light' | 'dark')[] = ['light']) {
  await page.evaluate(() => {
    for (const part of document.querySelectorAll('.tab-content, .recipe, .inspector')) part.scrollTop = 0;
  });
  await page.mouse.move(0, 0);
  await page.waitForTimeout(350);
  for (const s of schemes) {
    await page.emulateMedia({ colorScheme: s });
    await page.waitForTimeout(120);
    await page.screenshot({ path: join(OUT, `${name}-${s}.png`) });
  }
  await page.emulateMedia({ colorScheme: 'light' });
  const rows = await page.evaluate((props) => {
    const out: string[] = [];
    const walk = (el: Element, path: string) => {
      const cs = getComputedStyle(el);
      const r = el.getBoundingClientRect();
      out.push(
        `${path}\t${el.getAttribute('class') ?? ''}\t${[r.x, r.y, r.width, r.height].map((v) => v.toFixed(1)).join(',')}\t${props.map((p) => cs.getPropertyValue(p)).join('|')}\t${(el.children.length ? '' : (el.textContent ?? '')).slice(0, 40)}`,
      );
      let i = 0;
      for (const c of el.children) walk(c, `${path}>${c.tagName.toLowerCase()}${i++}`);
    };
    walk(document.body, 'body');
    return out;
  }, PROPS);
  writeFileSync(join(OUT, `${name}.styles`), `${PROPS.join('|')}\n${rows.join('\n')}`);
  console.log(name);
}
async function show(page: Page, name: string) {
  const isTab = TABS.some(({ text }) => text === name);
  const place = isTab ? 'Merge' : name;
  if (page.viewportSize()!.width < 760)
    await page.getByLabel('Place', { exact: true }).selectOption({ label: place });
  else await page.getByRole('link', { name: place, exact: true }).click();
  if (isTab) await page.getByRole('tab', { name: new RegExp(`^${name}`) }).click();
}
const both: ('light' | 'dark')[] = ['light', 'dark'];
async function sizes(page: Page, name: string, schemes = both) {
  for (const s of SIZES) {
    await page.setViewportSize(s);
    await picture(page, `${name}-${s.width}`, schemes);
  }
  await page.setViewportSize(SIZES[0]!);
}
async function sample(page: Page) {
  await page.setViewportSize(SIZES[0]!);
  await page.goto(url);
  await page.getByText(/^Ready:/).waitFor();
  await page
    .getByRole('gridcell', { name: /about .* within/ })
    .first()
    .waitFor();
  await sizes(page, 'a-open');
  for (const t of [...TABS, ...TOOLS])
    if (t.id !== 'recipe' && t.id !== 'layers') {
      await show(page, t.text);
      await sizes(page, `a-${t.id}`, ['light']);
    }
  await page.setViewportSize(SIZES[2]!);
  await show(page, 'Recipe');
  await picture(page, 'a-recipe-390', both);
  await page.setViewportSize(SIZES[0]!);
  await show(page, 'Layers');
  // dialogs
  await page.getByRole('button', { name: 'Examples' }).click();
  await page.getByRole('button', { name: /^In two stages/ }).waitFor();
  await sizes(page, 'b-examples', ['light']);
  await page.keyboard.press('Escape');
  await page.keyboard.press('Control+k');
  await page.waitForTimeout(500);
  await picture(page, 'b-palette', both);
  await page.keyboard.press('Escape');
  await page.waitForTimeout(300);
  const add = page.getByRole('button', { name: '+ add' });
  await add.first().click();
  await page.getByRole('dialog').waitFor();
  for (const t of await page.getByRole('dialog').getByRole('tab').all()) {
    await t.click();
    const n = (await t.textContent())!.replace(/\W+/g, '');
    await page.waitForTimeout(400);
    await sizes(page, `b-add-${n}`, ['light']);
  }
  await page.keyboard.press('Escape');
  await page.waitForTimeout(300);
  const storage = page.locator('.storage-badge');
  if (await storage.count()) {
    await storage.first().click();
    await page.waitForTimeout(600);
    await picture(page, 'b-storage', both);
    await page.keyboard.press('Escape');
  }
  await page.getByRole('radio', { name: 'Both' }).click();
  const text = page.getByRole('textbox', { name: 'Recipe as YAML' });
  await text.waitFor();
  await sizes(page, 'c-yaml', ['light']);
  await page.setViewportSize(SIZES[0]!);
  const was = await text.inputValue();
  await text.fill(was.replace(/density: /, 'densty: ').replace(/weight: .*/, 'weight: x'));
  await page.waitForTimeout(800);
  await picture(page, 'c-yaml-bad', both);
  await text.fill(was);
  await page.waitForTimeout(300);
  await page.getByRole('radio', { name: 'Form' }).click();
  // unfold cards, open parameter popover
  for (const fold of await page.locator('.card-fold').all()) await fold.click();
  for (const d of await page.locator('.recipe details:not([open]) > summary').all())
    await d.click().catch(() => {});
  await page.waitForTimeout(400);
  await page.locator('.recipe .parameter > .little').first().click();
  await page.waitForTimeout(500);
  await picture(page, 'd-form', both);
  await page.evaluate(() => {
    const f = document.querySelector('.recipe-form')!;
    (f as HTMLElement).style.height = '3000px';
  });
  await page.setViewportSize({ width: 1440, height: 2600 });
  await page.waitForTimeout(400);
  await picture(page, 'd-form-tall', both);
  await page.evaluate(() => {
    (document.querySelector('.recipe-form') as HTMLElement).style.height = '';
  });
  await page.locator('.recipe .parameter > .little').first().click();
  await page.setViewportSize(SIZES[0]!);
  await page.getByRole('combobox', { name: 'Merge method' }).selectOption('ties');
  await page.waitForTimeout(1500);
  await picture(page, 'd-ties');
  await page.getByRole('button', { name: 'Merge', exact: true }).click();
  await page.getByText(/^Merged in/).waitFor();
  await page.waitForTimeout(1500);
  await sizes(page, 'e-merged');
  await page.getByLabel('Add a run').selectOption('dare_linear');
  await page
    .getByRole('gridcell', { name: /layer 3, mlp\.down_proj/ })
    .first()
    .click();
  await page.waitForTimeout(2500);
  await sizes(page, 'e-layers');
  await page
    .getByRole('button', { name: /^Export/ })
    .first()
    .click()
    .catch(() => {});
  await page.waitForTimeout(300);
  await picture(page, 'e-export');
  await page.keyboard.press('Escape');
  await show(page, 'Try');
  await page.getByRole('button', { name: 'Generate', exact: true }).click();
  await page
    .getByText(/60\stokens in/)
    .nth(1)
    .waitFor();
  await sizes(page, 'e-try');
  await show(page, 'Measure');
  await page.waitForTimeout(1500);
  await page.getByRole('button', { name: 'text', exact: true }).click();
  await page.waitForTimeout(400);
  await picture(page, 'e-addtext');
  await page.getByRole('button', { name: 'Paste text' }).click();
  await page.waitForTimeout(300);
  await picture(page, 'e-paste');
  await page.keyboard.press('Escape');
  const m = page.getByRole('button', { name: /^Measure/ });
  if (await m.count()) {
    await m.first().click();
    await page.waitForTimeout(9000);
  }
  await sizes(page, 'e-measure');
  await show(page, 'Files');
  await page.locator('button:not([aria-disabled="true"])', { hasText: 'Download as .zip' }).waitFor();
  for (const d of await page.locator('.files-screen details:not([open]) > summary').all())
    await d.click().catch(() => {});
  await page.waitForTimeout(800);
  await sizes(page, 'e-files');
  await page.setViewportSize({ width: 1440, height: 3000 });
  await picture(page, 'e-files-tall', both);
  await page.setViewportSize(SIZES[0]!);
  await show(page, 'Difference');
  await page.getByRole('button', { name: 'Measure difference', exact: true }).click();
  await page.getByText(/^56 tensors compared/).waitFor();
  await page.waitForTimeout(800);
  await sizes(page, 'f-difference');
  await show(page, 'Collapse');
  await page.getByRole('button', { name: 'Measure layers' }).click();
  await page.getByText(/^Layer \d of 6 goes/).waitFor();
  await page.waitForTimeout(800);
  await sizes(page, 'f-collapse');
  await show(page, 'LoRA');
  await page.getByRole('button', { name: 'Inspect', exact: true }).click();
  await page.getByText('What a rank keeps').waitFor();
  await sizes(page, 'f-lora');
  await show(page, 'Convert');
  await sizes(page, 'f-convert', ['light']);
  await show(page, 'Layers');
  await page
    .locator('.runbar .link, .result-card .link')
    .first()
    .click()
    .catch(() => {});
  await page.waitForTimeout(800);
  await picture(page, 'g-report', both);
}
async function pretended(page: Page) {
  await page.setViewportSize(SIZES[0]!);
  await page.goto(`${url}${PAGE}?layers=24&experts=64`);
  await page.getByText(/^Ready:/).waitFor();
  const offer = page.getByRole('button', { name: 'Measure the changes now' });
  const measured = page.getByRole('gridcell');
  await offer.or(measured).first().waitFor();
  if (await offer.isVisible()) await offer.click();
  await measured.first().waitFor();
  await page.getByLabel('Add a run').selectOption('dare_ties');
  await page.waitForTimeout(1500);
  await sizes(page, 'p-experts');
  await page
    .getByRole('gridcell', { name: /layer 3, mlp\.experts/ })
    .first()
    .click();
  await page.waitForTimeout(800);
  await picture(page, 'p-open');
}
if (!ONLY || ONLY === 'sample') await inBrowser(sample);
if (!ONLY || ONLY === 'experts') await inBrowser(pretended);
await server.close();
rmSync(outDir, { recursive: true, force: true });
process.exit(0);
