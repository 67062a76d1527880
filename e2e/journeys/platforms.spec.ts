/** Browsers that refuse, hang or lack an API: the studio opens and merges all the same, and says what is missing. */
import type { Page } from '@playwright/test';
import { expect, merge, test } from './studio';

const throws = (name: string, message: string) =>
  `async () => { throw new DOMException('${message}', '${name}'); }`;
const missing = (of: string, what: string) =>
  `Object.defineProperty(${of}, '${what}', { get: () => undefined, configurable: true });`;

interface Case {
  /** Runs in the engine before anything else. */
  worker?: string;
  page?: string;
  /** Text of the badge's popover. */
  says?: RegExp;
  /** Text of the run bar besides. */
  shows?: RegExp;
}

/** What has nothing to do with each other is missing at once. */
const CASES: Record<string, Case> = {
  'the graphics adapter is refused, there are no locks, and a file is not answered for, once': {
    worker: `navigator.gpu.requestAdapter = ${throws('OperationError', 'blocklisted')};
      ${missing('WorkerNavigator.prototype', 'locks')}
      {
        const { getFile } = FileSystemFileHandle.prototype;
        let asked = 0;
        FileSystemFileHandle.prototype.getFile = function () {
          return asked++ === 0 ? new Promise(() => {}) : getFile.call(this);
        };
      }`,
    page: missing('Navigator.prototype', 'locks'),
    says: /This browser refuses WebGPU \(blocklisted\): merges run on the CPU/,
  },
  'the question for an adapter is never answered, and files are locked': {
    worker: `navigator.gpu.requestAdapter = () => new Promise(() => {});
      FileSystemFileHandle.prototype.createSyncAccessHandle = ${throws('NoModificationAllowedError', 'locked')};`,
    says: /does not answer when it is asked for a graphics adapter: merges run on the CPU/,
    shows: /This browser keeps no files/,
  },
  'the adapter says nothing of itself, and storage fails for an unknown reason': {
    worker: `${missing('GPUAdapter.prototype', 'info')}
      navigator.storage.getDirectory = ${throws('UnknownError', 'transient')};`,
    shows: /This browser keeps no files/,
  },
};

async function openOn(page: Page, { worker, page: inPage }: Case): Promise<void> {
  await page.route(/main\.worker.*\.js/, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, body: `${worker ?? ''}\n${await response.text()}` });
  });
  if (inPage) await page.addInitScript(inPage);
  await page.goto('/');
}

for (const [title, where] of Object.entries(CASES)) {
  test(`R65: where ${title}, it merges`, async ({ page }) => {
    await openOn(page, where);
    await expect(page.getByText(/^Ready:/)).toBeVisible();
    if (where.shows) await expect(page.getByText(where.shows).first()).toBeVisible();
    if (where.says) {
      await page.getByRole('banner').getByRole('button', { name: /^CPU/ }).click();
      await expect(page.getByText(where.says)).toBeVisible();
      await page.keyboard.press('Escape');
    }
    await merge(page);
  });
}

test('R65: over plain http it says what it needs', async ({ page }) => {
  await page.addInitScript(() => Object.defineProperty(window, 'isSecureContext', { value: false }));
  await page.goto('/');
  await expect(page.getByRole('alert')).toContainText(
    'Open it over https, or on this machine as http://localhost',
  );
});

test('R64: an engine that does not answer is said to, and goes on in another with what it has', async ({
  page,
}) => {
  await openOn(page, {
    // the first engine stops in the middle of the merge
    worker: `{
      const { write } = FileSystemSyncAccessHandle.prototype;
      let written = 0;
      FileSystemSyncAccessHandle.prototype.write = function (bytes, options) {
        const n = write.call(this, bytes, options);
        written += bytes.byteLength;
        if (written > 300_000) {
          const { buffer } = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
          Atomics.wait(new Int32Array(buffer), 0, 0);
        }
        return n;
      };
    }`,
  });
  await expect(page.getByText(/^Ready:/)).toBeVisible();
  await page.unroute(/main\.worker.*\.js/);
  await page.getByRole('button', { name: 'Merge', exact: true }).click();
  await expect(page.getByText(/Merging: nothing new for .*the engine does not answer/)).toBeVisible();
  await page.getByRole('button', { name: 'Restart this step' }).click();
  await expect(page.getByText(/^Merged in/)).toBeVisible();
});
