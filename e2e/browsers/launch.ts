/** Starts the browsers that the journeys are walked in: Chromium and Firefox over one protocol, WebKitGTK over WebDriver. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import puppeteer, { type Browser } from 'puppeteer-core';
import { CHROMIUM_ARGS, findChromium, SWIFTSHADER_ARGS } from '../setup-chromium.mjs';
import type { Tab } from './tab';

const FIREFOX = ['/usr/bin/firefox-esr', '/usr/bin/firefox'].find((path) => existsSync(path));
const WEBKIT_DRIVER = '/usr/bin/WebKitWebDriver';
const WEBKIT = ['/usr/lib/x86_64-linux-gnu', '/usr/lib/aarch64-linux-gnu']
  .flatMap((folder) => ['6.0', '4.1', '4.0'].map((api) => `${folder}/webkitgtk-${api}/MiniBrowser`))
  .concat(['4.1', '4.0'].map((api) => `/usr/lib/x86_64-linux-gnu/webkit2gtk-${api}/MiniBrowser`))
  .find((path) => existsSync(path));

const hasXvfb = existsSync('/usr/bin/Xvfb');

/** Within this a call of the driver is answered, the page's own script in it; fetch would give up at 300 s. */
const ANSWER_MS = 240_000;
const SCREEN_MS = 30_000;

/** Debian packages that each browser needs; the software Vulkan driver gives Firefox its WebGPU. */
const NEEDS: Record<string, [string, boolean][]> = {
  chromium: [['chromium', findChromium() !== undefined]],
  firefox: [
    ['firefox-esr', FIREFOX !== undefined],
    ['mesa-vulkan-drivers', existsSync('/usr/share/vulkan/icd.d')],
  ],
  webkit: [
    ['webkit2gtk-driver', existsSync(WEBKIT_DRIVER) && WEBKIT !== undefined],
    ['xvfb', hasXvfb],
  ],
};

/** Packages that are missing for these browsers. */
export function missingPackages(browsers: readonly string[]): string[] {
  return browsers.flatMap((browser) => NEEDS[browser] ?? []).flatMap(([name, has]) => (has ? [] : [name]));
}

/** How long a call of a page may take: journeys have ceilings of their own below it. */
const CALL_MS = 600_000;

/** Chromium on a profile. @param args beside those of every automated one @param callMs how long a call may take, 0 for ever */
export function startChromium(
  profile: string,
  args: readonly string[] = SWIFTSHADER_ARGS,
  callMs = CALL_MS,
): Promise<Browser> {
  return puppeteer.launch({
    browser: 'chrome',
    executablePath: findChromium()!,
    userDataDir: profile,
    args: ['--no-sandbox', '--disable-dev-shm-usage', ...CHROMIUM_ARGS, ...args],
    protocolTimeout: callMs,
  });
}

export async function openChromium(profile?: string, args = SWIFTSHADER_ARGS): Promise<Tab> {
  const own = profile ?? (await mkdtemp(join(tmpdir(), 'amalgam-browsers-')));
  const browser = await startChromium(own, args);
  const tab = await puppeteerTab('Chromium', browser, own, (p) => openChromium(p, args));
  const session = await browser.target().createCDPSession();
  await session.send('Browser.setDownloadBehavior', { behavior: 'allow', downloadPath: own });
  return tab;
}

/** Firefox on a profile, with WebGPU. */
function startFirefox(profile: string): Promise<Browser> {
  return puppeteer.launch({
    browser: 'firefox',
    executablePath: FIREFOX!,
    userDataDir: profile,
    protocolTimeout: CALL_MS,
    extraPrefsFirefox: {
      'dom.webgpu.enabled': true,
      // a software adapter is on the list of those that are not used unasked
      'gfx.webgpu.ignore-blocklist': true,
      'browser.download.folderList': 2,
      'browser.download.dir': profile,
      'browser.download.useDownloadDir': true,
      'browser.download.always_ask_before_handling_new_types': false,
      // restarted after a kill, it must open the given page
      'browser.sessionstore.resume_from_crash': false,
      'toolkit.startup.max_resumed_crashes': -1,
    },
  });
}

export async function openFirefox(profile?: string): Promise<Tab> {
  const own = profile ?? (await mkdtemp(join(tmpdir(), 'amalgam-browsers-')));
  return puppeteerTab('Firefox', await startFirefox(own), own, openFirefox);
}

async function puppeteerTab(
  name: string,
  browser: Browser,
  profile: string,
  open: (profile: string) => Promise<Tab>,
): Promise<Tab> {
  const page = (await browser.pages())[0] ?? (await browser.newPage());
  page.setDefaultNavigationTimeout(150_000);
  // a merge that is left is asked about
  page.on('dialog', (dialog) => void dialog.accept().catch(() => undefined));
  return {
    browser: `${name} ${(await browser.version()).replace(/^\D*/, '')}`,
    downloads: profile,
    async goto(url) {
      await page.goto(url);
    },
    run: <T>(expression: string) => page.evaluate(expression) as Promise<T>,
    async restart() {
      const program = browser.process()!;
      const ended = once(program, 'exit');
      program.kill('SIGKILL');
      await ended;
      return open(profile);
    },
    async close() {
      await browser.close();
      await rm(profile, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** WebKitGTK's own little browser, on a virtual screen. Its sessions store nothing: like a private window. */
export async function openWebKit(): Promise<Tab> {
  const display = `:${100 + Math.floor(Math.random() * 900)}`;
  const screen = spawn('Xvfb', [display, '-screen', '0', '1280x900x24'], { stdio: 'ignore' });
  const home = await mkdtemp(join(tmpdir(), 'amalgam-browsers-'));
  // the first window needs its screen: MiniBrowser does not wait for it
  const screenBy = Date.now() + SCREEN_MS;
  while (!existsSync(`/tmp/.X11-unix/X${display.slice(1)}`)) {
    if (Date.now() > screenBy)
      throw new Error(`WebKit: Xvfb did not open ${display} in ${SCREEN_MS / 1000} s`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const port = 20_000 + Math.floor(Math.random() * 20_000);
  const driver = spawn(WEBKIT_DRIVER, [`--port=${port}`, '--host=127.0.0.1'], {
    env: {
      ...process.env,
      DISPLAY: display,
      HOME: home,
      XDG_RUNTIME_DIR: home,
      // as root there is no user namespace for its sandbox
      WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS: '1',
      GDK_BACKEND: 'x11',
    },
    stdio: 'ignore',
  });
  const call = async <T>(method: string, path: string, body?: object): Promise<T> => {
    const signal = AbortSignal.timeout(ANSWER_MS);
    const reply = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      signal,
      ...(body ? { body: JSON.stringify(body) } : {}),
    }).catch((thrown) => {
      // not what `retried` tries again: a driver that hangs would be asked fifty times
      if (!signal.aborted) throw thrown;
      throw new Error(`WebKit: no answer to ${method} ${path} in ${ANSWER_MS / 1000} s`);
    });
    const { value } = (await reply.json()) as { value: T & { error?: string; message?: string } };
    if (!reply.ok) throw new Error(`WebKit: ${value.error}: ${value.message}`);
    return value;
  };
  const options = { binary: WEBKIT, args: ['--automation'] };
  const session = await retried(() =>
    call<{ sessionId: string; capabilities: { browserVersion: string } }>('POST', '/session', {
      capabilities: { alwaysMatch: { 'webkitgtk:browserOptions': options } },
    }),
  );
  const at = `/session/${session.sessionId}`;
  await call('POST', `${at}/timeouts`, { script: 200_000, pageLoad: 120_000 });
  return {
    browser: `WebKitGTK ${session.capabilities.browserVersion}`,
    async goto(url) {
      await call('POST', `${at}/url`, { url });
    },
    run: (expression) =>
      call('POST', `${at}/execute/async`, {
        script: `const done = arguments[0]; Promise.resolve(${expression}).then(done, (e) => done('failed: ' + e));`,
        args: [],
      }),
    async close() {
      await call('DELETE', at).catch(() => undefined);
      for (const program of [driver, screen]) program.kill();
      await rm(home, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** The driver takes a moment to listen. */
async function retried<T>(act: () => Promise<T>): Promise<T> {
  for (let tried = 1; ; tried++) {
    try {
      return await act();
    } catch (thrown) {
      if (!(thrown instanceof TypeError) || tried === 50) throw thrown;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }
}
