/**
 * Finds a Chromium with WebGPU for the tests and the headless command; run directly, also installs one where it can.
 * Plain JavaScript, so that it runs before anything is built.
 *
 *   node e2e/setup-chromium.mjs      prints the browser it found, or says what to install and exits 1
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright';

/** Arguments of every automated Chromium of ours. The last ones stop it from using the network. */
export const CHROMIUM_ARGS = [
  // a toolbar that nobody sees, drawn by pages of the browser's own
  '--disable-features=InitialWebUI,WebUIToolbar,WebUIReloadButton,WebUIOmniboxPopup,WebUIOmniboxFullPopup,WebUIOmniboxAimPopup',
  '--enable-unsafe-webgpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/**
 * Renders WebGPU on the processor: the same adapter on every machine, so tests mean the same everywhere. It takes a second
 * to compile what clears 16 KiB of workgroup memory, unless the shader does it by a loop.
 */
export const SWIFTSHADER_ARGS = [
  '--use-webgpu-adapter=swiftshader',
  '--disable-dawn-features=use_vulkan_zero_initialize_workgroup_memory_extension',
];

/**
 * Reaches the machine's own graphics device. Headless Chromium on Linux does so through Vulkan only, and wants it for
 * everything; composing pages with it ends the GPU process of a device without a screen at the first WebGPU adapter.
 */
export const GPU_ARGS =
  process.platform === 'linux'
    ? [
        '--use-angle=vulkan',
        '--enable-features=Vulkan',
        '--disable-vulkan-surface',
        '--disable-gpu-compositing',
      ]
    : [];

/**
 * Environment for a Node program with the same software adapter by Dawn: the Vulkan driver and loader beside the
 * installed Chromium. Empty where they are missing, and off Linux, where Dawn needs none.
 */
export function swiftShaderEnvironment() {
  const folder = dirname(findChromium() ?? '');
  const driver = join(folder, 'vk_swiftshader_icd.json');
  if (process.platform !== 'linux' || !existsSync(driver)) return {};
  const libraries = [folder, process.env.LD_LIBRARY_PATH].filter(Boolean).join(':');
  return { VK_ICD_FILENAMES: driver, LD_LIBRARY_PATH: libraries };
}

/**
 * The path of a Chromium or Chrome binary, or undefined. `CHROMIUM_PATH` wins. Real binaries come before the wrapper
 * scripts that distributions put on the path: a wrapper adds its own flags and prints into the output.
 */
export function findChromium() {
  const chosen = process.env.CHROMIUM_PATH;
  if (chosen) return existsSync(chosen) ? chosen : undefined;
  return candidates().find((path) => existsSync(path));
}

function candidates() {
  if (process.platform === 'darwin') {
    return [
      '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
      '/Applications/Chromium.app/Contents/MacOS/Chromium',
      chromium.executablePath(),
    ];
  }
  if (process.platform === 'win32') {
    const roots = [process.env.PROGRAMFILES, process.env['PROGRAMFILES(X86)'], process.env.LOCALAPPDATA];
    return [
      ...roots.filter(Boolean).map((root) => join(root, 'Google', 'Chrome', 'Application', 'chrome.exe')),
      chromium.executablePath(),
    ];
  }
  return [
    '/usr/lib/chromium/chromium',
    '/usr/lib/chromium-browser/chromium-browser',
    '/usr/lib64/chromium-browser/chromium-browser',
    '/opt/google/chrome/chrome',
    chromium.executablePath(),
    '/snap/bin/chromium',
    '/usr/bin/chromium',
    '/usr/bin/google-chrome',
  ];
}

function installWithApt() {
  for (const args of [
    ['update', '-qq'],
    ['install', '-y', '-qq', '--no-install-recommends', 'chromium'],
  ]) {
    const { status } = spawnSync('apt-get', args, {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    });
    if (status !== 0) return;
  }
}

function main() {
  const canInstall =
    process.platform === 'linux' && process.getuid?.() === 0 && existsSync('/usr/bin/apt-get');
  if (!findChromium() && !process.env.CHROMIUM_PATH && canInstall) {
    console.log('No Chromium found; installing the chromium package …');
    installWithApt();
  }
  const found = findChromium();
  if (found) {
    console.log(`Chromium: ${found}`);
    return;
  }
  console.error(
    process.env.CHROMIUM_PATH
      ? `CHROMIUM_PATH names ${process.env.CHROMIUM_PATH}, which does not exist. Correct it or unset it.`
      : 'No Chromium or Chrome was found. Install one of them (Debian or Ubuntu: "sudo apt-get install chromium"; ' +
          'any system: "npx playwright install chromium"), or set CHROMIUM_PATH to the program file.',
  );
  process.exitCode = 1;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main();
