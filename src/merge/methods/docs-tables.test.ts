import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { withTables } from '../../../docs/method-tables';
import { methods } from './index';

const page = readFileSync(new URL('../../../docs/methods.md', import.meta.url), 'utf8');

it('docs/methods.md says what the method files say (npm run docs:methods writes it)', () => {
  expect(withTables(page, methods)).toBe(page);
});

it('every parameter is named in the section of its method, and explained once (npm run docs:methods)', () => {
  for (const method of methods) {
    const section = page.slice(page.indexOf(`### ${method.id}\n`)).split('\n### ')[0]!;
    for (const [name, { when }] of Object.entries({ ...method.parameters, ...method.modelParameters })) {
      if (!when) expect(section).toContain(`\`${name}\``);
      expect(page).toMatch(new RegExp(`^(?:\\||-) \`${name}\`( †)? [|(]`, 'm'));
    }
  }
});
