/** A merge is heard before it is made: the text that the sliders were set by is the text of the files. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { amalgam, expect, merge, openSample, show, test, work } from './studio';

const PROMPT = 'Story: The';
const TOKENS = '16';

test('two LoRAs: a weight is moved, the text follows; kept as a run, merged, and the files write the same', async ({
  page,
}) => {
  // a picker that answers with a folder of the private file system: native ones cannot be driven
  await page.addInitScript(() => {
    const root = navigator.storage.getDirectory();
    Object.assign(window, {
      showDirectoryPicker: () => root.then((r) => r.getDirectoryHandle('picked', { create: true })),
    });
  });
  await openSample(page);
  await page.getByRole('button', { name: 'Remove workshop' }).click();
  await show(page, 'Files');
  await page.getByRole('radio', { name: /folder/i }).click();

  await show(page, 'Try');
  await page.getByRole('textbox', { name: 'Prompt' }).fill(PROMPT);
  await page.getByLabel('tokens', { exact: true }).fill(TOKENS);
  await page.getByLabel('temperature').fill('0');
  await page.getByLabel('temperature').press('Enter');
  await page.getByRole('button', { name: 'Generate', exact: true }).click();
  await expect(page.getByText(/16\stokens in/)).toHaveCount(2);
  const live = page.getByRole('article', { name: /^A / });
  const text = live.locator('.written-text');
  const before = await text.textContent();
  const weight = page.getByRole('textbox', { name: 'weight of kitchen, number' });
  await weight.fill('5');
  await weight.press('Enter');
  await expect(text).not.toHaveText(before!);
  await expect(live.getByText(/16\stokens in/)).toBeVisible();
  const heard = (await text.textContent())!;

  await show(page, 'Layers');
  await page.getByRole('combobox', { name: 'Add a run' }).selectOption({ label: 'the settings as they are' });
  await merge(page);
  const files = await page.evaluate(async () => {
    const picked = await (await navigator.storage.getDirectory()).getDirectoryHandle('picked');
    const found: [string, string][] = [];
    for await (const folder of picked.values()) {
      for await (const file of (folder as FileSystemDirectoryHandle).values()) {
        const bytes = new Uint8Array(await (await (file as FileSystemFileHandle).getFile()).arrayBuffer());
        const text = Array.from({ length: Math.ceil(bytes.length / 4096) }, (_, i) =>
          String.fromCharCode(...bytes.subarray(i * 4096, (i + 1) * 4096)),
        );
        found.push([file.name, btoa(text.join(''))]);
      }
    }
    return found;
  });
  for (const [name, bytes] of files) writeFileSync(join(work, name), bytes, 'base64');
  const greedy = ['--max-tokens', TOKENS, '--temperature', '0', '--engine', 'cpu'];
  const { code, stdout } = await amalgam(['generate', work, '--prompt', PROMPT, ...greedy]);
  expect(code).toBe(0);
  expect(stdout.trimEnd()).toBe(heard.trimEnd());
});
