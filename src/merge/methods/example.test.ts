/** The worked example of docs/adding-a-method.md: its page shows these files, and its tests are those of every method. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { magmax } from '../../../docs/example/magmax';
import { oracle } from '../../../docs/example/magmax.oracle';
import { contractTests } from './contract.test.support';

const docs = new URL('../../../docs/', import.meta.url);
const page = readFileSync(new URL('adding-a-method.md', docs), 'utf8');

/** A file of the example with its imports as they are where a method really lives. */
function asAdded(file: string): string {
  return readFileSync(new URL(`example/${file}`, docs), 'utf8')
    .replaceAll("'../../src/merge/methods/", "'./")
    .replaceAll("'../../src/merge/", "'../")
    .replaceAll("'../../src/", "'../../")
    .replaceAll("'./magmax.wgsl?raw'", "'../../../shaders/magmax.wgsl?raw'");
}

it.each([
  ['magmax.ts', 'ts'],
  ['magmax.wgsl', 'wgsl'],
  ['magmax.oracle.ts', 'ts'],
])('the page shows %s', (file, language) => {
  expect(page).toContain(`\`\`\`${language}\n${asAdded(file)}\`\`\``);
});

contractTests(magmax, oracle);
