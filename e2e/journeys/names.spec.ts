/** Thirty names as attacks, as tensors, folders, repositories and licenses: they are shown as text, and nothing else happens. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import { displayName } from '../../src/formats/names';
import names from '../corpus/names.json' with { type: 'json' };
import { startFakeHub } from '../fake-hub';
import { HUB_CDN_PORT, HUB_PORT } from './addresses';
import { expect, merge, openSample, pointAtFakeHub, show, test, work } from './studio';

/** A model whose tensors have these names, four values each. */
function writeModel(folder: string, value: number): void {
  mkdirSync(folder);
  const config = { model_type: 'llama', architectures: names, _name_or_path: names[0], vocab_size: 4 };
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
  writeFileSync(
    join(folder, 'README.md'),
    `---\nlicense: "${'<script>alert(1)</script>'}"\n---\n${names.join('\n')}`,
  );
  const entries = names.map((name, i) => [
    name,
    { dtype: 'F32', shape: [4], data_offsets: [16 * i, 16 * i + 16] },
  ]);
  const header = Buffer.from(JSON.stringify(Object.fromEntries([['__metadata__', { format: 'pt' }]])));
  // not through an object: `__proto__` is one of the names
  const text = `${header.toString().slice(0, -1)},${entries
    .map(([name, info]) => `${JSON.stringify(name)}:${JSON.stringify(info)}`)
    .join(',')}}`;
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(Buffer.byteLength(text)));
  const data = new Float32Array(names.length * 4).map((_, i) => value + i / 100);
  writeFileSync(
    join(folder, 'model.safetensors'),
    Buffer.concat([length, Buffer.from(text), Buffer.from(data.buffer)]),
  );
}

/** Elements that no part of the studio makes, and what the page noticed of attacks. */
async function harm(page: Page): Promise<unknown> {
  return page.evaluate(() => ({
    elements: document.querySelectorAll(
      'img, iframe, object, embed, body style, [onerror], [onload], a[href^="javascript:"], #root script',
    ).length,
    noticed: (window as unknown as { noticed: string[] }).noticed,
  }));
}

test('R48: thirty hostile names are shown as text, with no report of the policy and no element of theirs', async ({
  page,
}) => {
  const [first, second] = [names[0]!, '<svg onload=alert(1)>'];
  writeModel(join(work, first), 1);
  writeModel(join(work, second), 2);
  const hub = await startFakeHub({
    models: names
      .filter((name) => !/[/\n]/.test(name))
      .map((name) => ({
        id: `hostile/${name}`,
        files: { 'config.json': '{}' },
        tags: [`license:${name}`, 'safetensors'],
      })),
    port: HUB_PORT,
    cdnPort: HUB_CDN_PORT,
  });
  page.on('dialog', (dialog) => void dialog.dismiss());
  await page.addInitScript(() => {
    const noticed: string[] = [];
    Object.assign(window, { noticed, showDirectoryPicker: undefined, alert: () => noticed.push('alert') });
    document.addEventListener('securitypolicyviolation', (e) =>
      noticed.push(`${e.violatedDirective} ${e.blockedURI}`),
    );
  });
  try {
    await openSample(page);
    for (const name of ['kitchen', 'harbour', 'workshop']) {
      await page.getByRole('button', { name: `Remove ${name}` }).click();
    }
    await page.getByRole('button', { name: 'change' }).first().click();
    await page.getByRole('tab', { name: /computer|local/i }).click();
    await page.getByLabel('Model folder').setInputFiles(join(work, first));
    await expect(page.getByRole('dialog')).toBeHidden();
    await page.getByRole('button', { name: '+ add' }).first().click();
    await page.getByRole('tab', { name: /computer|local/i }).click();
    await page.getByLabel('Model folder').setInputFiles(join(work, second));
    await expect(page.getByRole('button', { name: `Added: ${second}` }).first()).toBeVisible();

    // repositories, in what a search finds
    await page.getByRole('tab', { name: 'Hub' }).click();
    await pointAtFakeHub(page);
    await page.getByLabel('Search the Hub').fill('hostile');
    await expect(page.getByText('<img src=x onerror=alert(1)>').first()).toBeVisible();
    for (const name of names.slice(0, 3)) {
      await page.getByLabel('Search the Hub').fill(`hostile/${name}`);
    }
    expect(await harm(page)).toEqual({ elements: 0, noticed: [] });
    await page.getByRole('button', { name: 'Done' }).click();

    await expect(page.getByText(/^Ready:/)).toBeVisible();
    await show(page, 'Layers');
    await page.locator('.table .cut:visible').first().hover();
    const missing = new Set(names);
    for (let tried = 0; tried < 40 && missing.size > 0; tried++) {
      const text = await page.evaluate(() => document.body.textContent ?? '');
      for (const name of missing) if (text.includes(displayName(name))) missing.delete(name);
      await page.mouse.wheel(0, 200);
      // scrolled and painted
      await page.evaluate(
        () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
      );
    }
    expect([...missing]).toEqual([]);
    expect(await harm(page)).toEqual({ elements: 0, noticed: [] });

    await merge(page);
    await page.getByRole('button', { name: 'Details', exact: true }).click();
    await expect(page.getByRole('region', { name: 'Report of the run' })).toBeVisible();
    expect(await harm(page)).toEqual({ elements: 0, noticed: [] });
    await page.keyboard.press('Escape');
    for (const name of ['Layers', 'Try', 'Measure', 'Difference', 'Collapse', 'Files']) {
      await show(page, name);
      expect(await harm(page), name).toEqual({ elements: 0, noticed: [] });
    }
  } finally {
    await hub.close();
  }
});
