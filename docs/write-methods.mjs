/** Writes the tables of docs/methods.md from the method files: `npm run docs:methods`. */
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'vite';

const file = new URL('methods.md', import.meta.url);
const server = await createServer({
  server: { middlewareMode: true, ws: false },
  appType: 'custom',
  logLevel: 'error',
});
try {
  const { withTables } = await server.ssrLoadModule('/docs/method-tables.ts');
  const { methods } = await server.ssrLoadModule('/src/merge/methods/index.ts');
  writeFileSync(file, withTables(readFileSync(file, 'utf8'), methods));
} finally {
  await server.close();
}
