import process from 'node:process';
import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';
import { cpuKernels } from './assembly/vite-plugin.ts';
import { thirdPartyNoticesFile } from './licenses/vite-plugin.ts';
import { offlineApp } from './offline/vite-plugin.ts';
import { contentSecurityPolicy, HUB_ORIGINS, ISOLATION } from './src/cli/content-security-policy.ts';

/**
 * Origins the built page may talk to. `VITE_HUB_URL` builds for another hub: its URL, followed by the hosts it
 * redirects downloads to, separated by spaces.
 */
const connect = process.env.VITE_HUB_URL
  ? process.env.VITE_HUB_URL.split(/\s+/).map((url) => new URL(url).origin)
  : HUB_ORIGINS;

/** Writes the policy into the built page. The dev server's hot reloading needs inline scripts, so it goes without. */
const policy: Plugin = {
  name: 'amalgam-content-security-policy',
  apply: 'build',
  transformIndexHtml: () => [
    {
      tag: 'meta',
      attrs: { 'http-equiv': 'Content-Security-Policy', content: contentSecurityPolicy(connect) },
      injectTo: 'head-prepend',
    },
  ],
};

/** What WGSL says in comments is for whoever reads the sources. */
const plainShaders = (): Plugin => ({
  name: 'amalgam-plain-shaders',
  apply: 'build',
  transform: (code, id) =>
    id.endsWith('.wgsl?raw') ? { code: code.replaceAll(/ *\/\/.*?(?=\\n|"$)/g, ''), map: null } : undefined,
});

interface Modules {
  getModuleInfo(id: string): { importers: readonly string[] } | null;
}

/** Whether a module is `what`, or arrives with it. */
function comesWith(what: RegExp, id: string, modules: Modules, seen = new Set<string>()): boolean {
  if (what.test(id)) return true;
  if (seen.has(id)) return false;
  seen.add(id);
  return modules.getModuleInfo(id)?.importers.some((by) => comesWith(what, by, modules, seen)) ?? false;
}

/** One file of all that arrives with a module, for each in turn; it would be one for every set of modules that share a part of it. */
const together = (files: Readonly<Record<string, RegExp>>) => ({
  codeSplitting: {
    groups: Object.entries(files).map(([file, first]) => ({
      name: (id: string, modules: Modules) =>
        !first.test(id) && comesWith(first, id, modules) ? file : null,
    })),
  },
});

const hasDesktop =
  process.platform === 'darwin' ||
  process.platform === 'win32' ||
  Boolean(process.env.DISPLAY || process.env.WAYLAND_DISPLAY);

export default defineConfig({
  base: './',
  plugins: [react(), policy, cpuKernels(), plainShaders(), thirdPartyNoticesFile(), offlineApp()],
  worker: {
    format: 'es',
    plugins: () => [cpuKernels(), plainShaders()],
    rolldownOptions: {
      checks: { bundlerTimings: false },
      output: together({
        planning: /\/main\.worker\.ts/,
        statistics: /\/merge\/prediction\/job\.ts/,
      }),
    },
  },
  // Found up front, so that the dev server never has to reload the page in the middle of somebody's first merge.
  optimizeDeps: { entries: ['index.html', 'src/**/*.worker.ts'] },
  // No other page of this machine may read the project.
  server: { open: hasDesktop, cors: false, headers: ISOLATION },
  // a worker has the policy of the header it came with, never that of the page
  preview: {
    cors: false,
    headers: { 'Content-Security-Policy': contentSecurityPolicy(connect), ...ISOLATION },
  },
  build: {
    target: 'es2023',
    // The policy allows no data: fonts or scripts.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // whoever starts the studio can do nothing about them
    rolldownOptions: {
      checks: { bundlerTimings: false },
      output: together({
        entry: /\/main\.tsx/,
        studio: /\/ui\/start\.tsx/,
        tabs: /\/ui\/(layers\/LayersTab|try\/TryTab|screens\/FilesTab|inspector\/Inspector)\.tsx/,
      }),
    },
    chunkSizeWarningLimit: 600,
  },
});
