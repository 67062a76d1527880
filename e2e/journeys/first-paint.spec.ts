/** What a first visit waits for: the scripts without which the studio cannot paint. */
import { gzipSync } from 'node:zlib';
import { STUDIO_URL } from './addresses';
import { expect, test } from './studio';

const MOST_KILOBYTES = 200;

/** Static imports of a built module: `import"./a.js"`, `import{b}from"./c.js"`, `export{d}from"./e.js"`. */
const STATIC = /\b(?:import|from)\s*["']\.\/([^"']+\.js)["']/g;
/** What the entry starts by `import()`; the headless command's page is not for people. */
const STARTED = /\bimport\(\s*[`"']\.\/((?!page-)[^`"']+\.js)[`"']/g;

const all = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map((match) => match[1] ?? '');

test(`the studio needs at most ${MOST_KILOBYTES} kB of script to paint, gzipped`, async ({ request }) => {
  const get = async (path: string) => (await request.get(new URL(path, STUDIO_URL).href)).text();
  const [entry] = all(await get('index.html'), /src="\.\/assets\/([^"]+\.js)"/g);
  const sizes = new Map<string, number>();
  const follow = async (file: string): Promise<void> => {
    if (sizes.has(file)) return;
    sizes.set(file, 0);
    const text = await get(`assets/${file}`);
    sizes.set(file, gzipSync(text, { level: 9 }).length);
    for (const next of all(text, STATIC)) await follow(next);
    if (file === entry) for (const next of all(text, STARTED)) await follow(next);
  };
  await follow(entry ?? '');
  // the entry, the studio with what it shares with its parts, and the engine's client
  expect([...sizes.keys()].some((file) => file.startsWith('start-'))).toBe(true);
  expect([...sizes.keys()].some((file) => file.startsWith('client-'))).toBe(true);
  const kilobytes = [...sizes.values()].reduce((a, b) => a + b, 0) / 1000;
  console.log(`first paint: ${kilobytes.toFixed(1)} kB of script, gzipped, in ${sizes.size} files`);
  expect(kilobytes).toBeLessThanOrEqual(MOST_KILOBYTES);
});
