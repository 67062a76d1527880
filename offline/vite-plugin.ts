/** Writes `sw.js` beside the built page: the service worker, with every file of the app and a version made of them. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Plugin } from 'vite';

const SOURCE = join(dirname(fileURLToPath(import.meta.url)), 'service-worker.js');

/** What the sample family is: in the build for people who look there, of no use to the app. */
const LEFT_OUT = /^(sw\.js|THIRD-PARTY-NOTICES\.txt|samples\/(expected\.json|README\.md|LICENSE.*))$/;

/** Files of the app below a built folder, by path, in one order everywhere. */
export function appFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) =>
      join(entry.parentPath, entry.name)
        .slice(folder.length + 1)
        .replaceAll('\\', '/'),
    )
    .filter((path) => !LEFT_OUT.test(path))
    .sort();
}

/** The service worker for a built folder: equal folders have equal ones. */
export function serviceWorker(folder: string): string {
  const source = readFileSync(SOURCE, 'utf8');
  const files = appFiles(folder).map((file) => [file, sha256(readFileSync(join(folder, file)))]);
  return source
    .replace('__FILES__', JSON.stringify(files))
    .replace('__VERSION__', sha256(source + JSON.stringify(files)).slice(0, 16));
}

function sha256(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}

export function offlineApp(): Plugin {
  return {
    name: 'amalgam-offline',
    apply: 'build',
    // the last thing of a build: all files are there
    writeBundle: {
      order: 'post',
      sequential: true,
      handler({ dir }) {
        if (dir !== undefined) writeFileSync(join(dir, 'sw.js'), serviceWorker(dir));
      },
    },
  };
}
