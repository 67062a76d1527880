import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'vite';
import { serveStudio } from '../src/cli/build';

const ROOT = join(import.meta.dirname, '..');
const CALLS = 'e2e/calls.html';

export interface BuiltStudio {
  /** The studio's address, slash at the end. */
  url: string;
  /** Address of the page that hands out the calls of the worker (calls-page.ts). */
  callsUrl: string;
  close(): Promise<void>;
}

/**
 * Builds the page of the studio's calls, beside it the other pages, and serves them. Their policy is in the header alone, so that
 * they may talk to the hub of the test.
 * @param connect origins besides its own that the studio may talk to
 * @param port 0 for any free one
 */
export async function startBuiltStudio(
  connect: readonly string[],
  port = 0,
  others: readonly string[] = ['index.html'],
): Promise<BuiltStudio> {
  const dist = await mkdtemp(join(tmpdir(), 'amalgam-dist-'));
  const pages = [...others, CALLS];
  const input = pages.map((page) => join(ROOT, page));
  await build({ root: ROOT, logLevel: 'warn', build: { outDir: dist, rollupOptions: { input } } });
  for (const page of pages) {
    const file = join(dist, page);
    const html = await readFile(file, 'utf8');
    await writeFile(file, html.replace(/<meta http-equiv="Content-Security-Policy"[^>]*>/, ''));
  }
  const { url, close } = await serveStudio(dist, connect, port);
  return {
    url,
    callsUrl: `${url}${CALLS}`,
    async close() {
      await close();
      await rm(dist, { recursive: true, force: true });
    },
  };
}
