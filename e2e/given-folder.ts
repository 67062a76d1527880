/** A folder that a page can pick, for journeys and pictures. */

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright';
import { SAMPLES } from './disk-folder';

/**
 * Puts copies of sample models into a folder of the page's private file system, which stands for one on the disk: native
 * pickers cannot be driven. Opens the page at `url`. Its access has to be asked for again after a reload, as on the disk.
 */
export async function giveFolder(
  page: Page,
  folder: string,
  models: readonly string[],
  url = '/',
): Promise<void> {
  const files = models.flatMap((model) =>
    readdirSync(join(SAMPLES, model)).map((file) => `${model}/${file}`),
  );
  // tsx, which runs the screenshots, names functions by a helper that pages lack
  await page.addInitScript('globalThis.__name ??= (f) => f');
  await page.addInitScript((name) => {
    const access = sessionStorage;
    Object.assign(window, {
      showDirectoryPicker: async () => {
        access.setItem('access', `${performance.timeOrigin}`);
        return (await navigator.storage.getDirectory()).getDirectoryHandle(name);
      },
    });
    Object.assign(FileSystemHandle.prototype, {
      queryPermission: async () =>
        access.getItem('access') === `${performance.timeOrigin}` ? 'granted' : 'prompt',
      requestPermission: async () => {
        access.setItem('access', `${performance.timeOrigin}`);
        return 'granted';
      },
    });
  }, folder);
  await page.goto(url);
  await page.evaluate(
    async ({ name, paths }) => {
      const root = await (await navigator.storage.getDirectory()).getDirectoryHandle(name, { create: true });
      for (const path of paths) {
        const [model = '', file = ''] = path.split('/');
        const inside = await root.getDirectoryHandle(model, { create: true });
        const out = await (await inside.getFileHandle(file, { create: true })).createWritable();
        await out.write(await (await fetch(`samples/${path}`)).blob());
        await out.close();
      }
    },
    { name: folder, paths: files },
  );
}
