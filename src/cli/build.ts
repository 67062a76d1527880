import { existsSync } from 'node:fs';
import { readdir, rename, rm, stat } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import process from 'node:process';
import type { Plugin } from 'vite';
import { contentSecurityPolicy, ISOLATION } from './content-security-policy';

/** Sources of the built studio, relative to the project's root. */
const INPUTS = [
  'src',
  'shaders',
  'assembly',
  'offline',
  'public',
  'index.html',
  'vite.config.ts',
  'package-lock.json',
];

/**
 * Builds the studio into `dist` unless the build there is newer than everything it is made of. The new build takes
 * the old one's place in one step, so two commands at once do not serve half of one.
 *
 * @param root the project's folder
 * @param say told how far a build is, line by line
 * @returns the folder of the build
 */
export async function ensureBuilt(root: string, say: (line: string) => void): Promise<string> {
  const dist = join(root, 'dist');
  const built = await stat(join(dist, 'index.html')).catch(() => undefined);
  const newest = Math.max(...(await Promise.all(INPUTS.map((input) => newestChange(join(root, input))))));
  if (built && built.mtimeMs >= newest) return dist;
  const { build } = await import('vite');
  const fresh = join(root, `dist-${process.pid}`);
  const old = join(root, `dist-${process.pid}-old`);
  try {
    const plugins = [buildSteps('the studio', say)];
    await build({ root, logLevel: 'warn', plugins, build: { outDir: fresh, emptyOutDir: true } });
    await rename(dist, old).catch(ignoreMissing);
    await rename(fresh, dist);
  } finally {
    for (const folder of [fresh, old]) await rm(folder, { recursive: true, force: true });
  }
  return dist;
}

/** Modules that are read between two lines of a build. */
const BETWEEN_LINES = 150;

/** A plugin that says how far the build of something is: on a slow machine it takes minutes. */
export function buildSteps(what: string, say: (line: string) => void): Plugin {
  let modules = 0;
  const step = (at: number, words: string) => say(`Building ${what} (${at} of 3: ${words}) …`);
  return {
    name: 'amalgam-build-steps',
    buildStart: () => step(1, 'reading its modules'),
    moduleParsed() {
      if (++modules % BETWEEN_LINES === 0) step(1, `${modules} modules read`);
    },
    renderStart: () => step(2, `joining ${modules} modules`),
    writeBundle: () => step(3, 'written'),
  };
}

/** Milliseconds of the latest change at or below a path; tests are not part of the build. */
async function newestChange(path: string): Promise<number> {
  const stats = await stat(path).catch(() => undefined);
  if (!stats) return 0;
  if (!stats.isDirectory()) return /\.test\./.test(path) ? 0 : stats.mtimeMs;
  const inside = await readdir(path);
  return Math.max(
    stats.mtimeMs,
    ...(await Promise.all(inside.map((name) => newestChange(join(path, name))))),
  );
}

/**
 * Serves a built studio on 127.0.0.1: nothing but its files, to no other origin, under the policy it has everywhere.
 * @param connect origins that its pages may talk to besides their own
 * @param port 0 for any free one
 * @throws Error when the port is taken
 */
export async function serveStudio(
  dist: string,
  connect: readonly string[],
  port = 0,
): Promise<{ url: string; close(): Promise<void> }> {
  const { preview } = await import('vite');
  const headers = {
    'Content-Security-Policy': `${contentSecurityPolicy(connect)}; frame-ancestors 'none'`,
    ...ISOLATION,
    'Cross-Origin-Resource-Policy': 'same-origin',
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': 'no-referrer',
  };
  const server = await preview({
    configFile: false,
    logLevel: 'silent',
    // missing files answer 404, not the index page
    appType: 'mpa',
    build: { outDir: dist },
    preview: { host: '127.0.0.1', port, strictPort: true, open: false, cors: false, headers },
    plugins: [
      {
        name: 'amalgam-unchanging-assets',
        // their names tell their content: opened again, the studio asks for none of them
        configurePreviewServer: ({ middlewares }) => {
          middlewares.use((request, response, next) => {
            if (/^\/assets\/[\w.-]+$/.test(request.url ?? '') && existsSync(join(dist, request.url!)))
              response.setHeader('Cache-Control', 'public, max-age=31536000, immutable');
            next();
          });
        },
      },
    ],
  });
  return {
    url: `http://127.0.0.1:${(server.httpServer.address() as AddressInfo).port}/`,
    close: () => server.close(),
  };
}

function ignoreMissing(thrown: NodeJS.ErrnoException): void {
  if (thrown.code !== 'ENOENT') throw thrown;
}
