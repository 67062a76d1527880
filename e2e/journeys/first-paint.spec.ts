/** Scripts that a first visit waits for: the studio cannot paint without them. */
import { gzipSync } from 'node:zlib';
import { STUDIO_URL } from './addresses';
import { expect, test } from './studio';

const MOST_KILOBYTES = 200;
const MOST_WORKER_KILOBYTES = 150;

/** Static imports of a built module: `import"./a.js"`, `import{b}from"./c.js"`, `export{d}from"./e.js"`. */
const STATIC = /\b(?:import|from)\s*["']\.\/([^"']+\.js)["']/g;
/** Scripts that the entry starts by `import()`. */
const STARTED = /\bimport\(\s*[`"']\.\/([^`"']+\.js)[`"']/g;

const all = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map((match) => match[1] ?? '');

/** The gzipped bytes of scripts by file: those given, and all they import. `entry` also starts others. */
async function sizesOf(files: readonly string[], get: (path: string) => Promise<string>, entry?: string) {
  const sizes = new Map<string, number>();
  let texts = '';
  const follow = async (file: string): Promise<void> => {
    if (sizes.has(file)) return;
    sizes.set(file, 0);
    const text = await get(`assets/${file}`);
    texts += text;
    sizes.set(file, gzipSync(text, { level: 9 }).length);
    for (const next of all(text, STATIC)) await follow(next);
    if (file === entry) for (const next of all(text, STARTED)) await follow(next);
  };
  for (const file of files) await follow(file);
  const kilobytes = [...sizes.values()].reduce((a, b) => a + b, 0) / 1000;
  return { files: [...sizes.keys()], texts, kilobytes };
}

test(`the studio needs at most ${MOST_KILOBYTES} kB of script to paint, its worker ${MOST_WORKER_KILOBYTES} kB to plan, gzipped`, async ({
  request,
}) => {
  const get = async (path: string) => (await request.get(new URL(path, STUDIO_URL).href)).text();
  const [entry = ''] = all(await get('index.html'), /src="\.\/assets\/([^"]+\.js)"/g);
  // it says so where the rest does not arrive
  expect((await sizesOf([entry], get)).kilobytes).toBeLessThan(8);
  const page = await sizesOf([entry], get, entry);
  // the entry, the studio with what it shares with its parts, and the engine's client
  expect(page.files.some((file) => file.startsWith('start-'))).toBe(true);
  expect(page.files.some((file) => file.startsWith('client-'))).toBe(true);
  console.log(`first paint: ${page.kilobytes.toFixed(1)} kB of script in ${page.files.length} files`);
  expect(page.kilobytes).toBeLessThanOrEqual(MOST_KILOBYTES);

  // scripts of a job load with the job: planning is in the worker's static imports
  const [workerFile = ''] = all(page.texts, /(main\.worker-[\w-]+\.js)/g);
  const worker = await sizesOf([workerFile], get);
  expect(worker.files.some((file) => file.startsWith('planning-'))).toBe(true);
  console.log(`worker: ${worker.kilobytes.toFixed(1)} kB of script in ${worker.files.length} files`);
  expect(worker.kilobytes).toBeLessThanOrEqual(MOST_WORKER_KILOBYTES);
});
