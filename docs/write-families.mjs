/** Writes the table of families in docs/forward.md from the fixtures: `npm run docs:families`. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'vite';

const file = new URL('forward.md', import.meta.url);
const checkedFile = new URL('../e2e/fixtures/golden/checked.json', import.meta.url);
const server = await createServer({
  server: { middlewareMode: true, ws: false },
  appType: 'custom',
  logLevel: 'error',
});
try {
  const { seenShare, withFamilies } = await server.ssrLoadModule('/docs/families-table.ts');
  const { resolveArchitecture } = await server.ssrLoadModule('/src/models/resolution.ts');
  const { parseModelConfig } = await server.ssrLoadModule('/src/formats/model-config.ts');
  const { goldenFolder } = await server.ssrLoadModule('/e2e/goldens.ts');
  const checked = new Map(Object.entries(JSON.parse(readFileSync(checkedFile, 'utf8'))));
  for (const group of ['forward', 'forward2', 'encoders']) {
    for (const name of readdirSync(goldenFolder(group))) {
      const text = readFileSync(`${goldenFolder(group)}/${name}/config.json`, 'utf8');
      const config = parseModelConfig(text, 'config.json');
      if (!checked.has(config.modelType)) {
        checked.set(config.modelType, { seen: seenShare(resolveArchitecture(config, { masked: true })) });
      }
    }
  }
  writeFileSync(file, withFamilies(readFileSync(file, 'utf8'), checked));
} finally {
  await server.close();
}
