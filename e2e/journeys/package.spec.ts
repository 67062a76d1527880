/** The npm package: packed, installed in an empty folder without a network, it merges; its formats can be imported. */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { readSafetensors } from './merged-folder';
import { expect, ROOT, test, work } from './studio';

const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');
const [calls = '', formats = ''] = [...readme.matchAll(/```js\n([\s\S]*?)```/g)].map(([, code]) => code!);

/** A program in TypeScript against the types of the package. */
const TYPED = `import { AmalgamError, type MergeReport, merge, type PlanReport, plan } from 'amalgam';
import { parseRecipe } from 'amalgam/formats';
export const report: Promise<MergeReport> = merge('', { out: 'x', stream: true, onProgress: ({ tensorsDone }) => console.log(tensorsDone) });
export const planned: Promise<PlanReport> = plan('');
export const problems: number = parseRecipe('').problems.length;
planned.catch((thrown: unknown) => thrown instanceof AmalgamError && console.log(thrown.hint));
// @ts-expect-error a merge needs a folder
void merge('', {});
`;

test('installs without a network in an empty folder, merges the sample, and lends its formats', () => {
  const run = (file: string, ...args: string[]) => execFileSync(file, args, { cwd: work, encoding: 'utf8' });
  const tarball = execFileSync(process.execPath, ['src/cli/package.mjs', work], {
    cwd: ROOT,
    encoding: 'utf8',
  }).trim();
  writeFileSync(join(work, 'package.json'), '{"type":"module"}');
  run('npm', 'install', '--offline', '--no-audit', '--no-fund', '--loglevel', 'error', tarball);
  expect(readdirSync(join(work, 'node_modules')).filter((name) => !name.startsWith('.'))).toEqual([
    'amalgam',
  ]);

  for (const name of ['base', 'workshop'])
    cpSync(join(ROOT, 'public/samples', name), join(work, name), { recursive: true });
  writeFileSync(
    join(work, 'recipe.yml'),
    'merge_method: linear\nmodels:\n- {model: base, parameters: {weight: 1}}\n- {model: workshop, parameters: {weight: 1}}\n',
  );
  run('npx', 'amalgam', 'merge', 'recipe.yml', '--out', 'merged');
  const tensors = (name: string) =>
    readSafetensors(readFileSync(join(work, name, 'model.safetensors'))).tensors.size;
  expect(tensors('merged')).toBe(tensors('base'));
  expect(run('npx', 'amalgam', 'plan', 'recipe.yml')).toContain('linear');

  const inside = join(work, 'node_modules/amalgam');
  for (const page of ['SKILL.md', 'README.md']) {
    const text = readFileSync(join(inside, page), 'utf8');
    // no samples, no scripts of the project, no page that is not there
    expect(text).not.toMatch(/public\/|npm (run|start|ci)/);
    for (const [, link = ''] of text.matchAll(/\]\((?!https?:)([^)]+)\)/g))
      expect(existsSync(join(inside, link)), link).toBe(true);
    expect(text).toContain('npx amalgam merge recipe.yml');
  }
  writeFileSync(join(work, 'calls.js'), calls);
  expect(run(process.execPath, 'calls.js')).toMatch(
    /^it fits: \d{7} bytes\nperplexity \d+\.\d; The knife ?\w/,
  );
  expect(tensors('average')).toBe(tensors('base'));
  const thrown =
    "import('amalgam').then(({ merge }) => merge('models: 3', { out: 'x' })).catch((e) => console.log(e.code + ' ' + (e.hint.length > 0)))";
  expect(run(process.execPath, '-e', thrown)).toBe('RecipeInvalid true\n');
  const wrong =
    "import('amalgam').then(async (a) => { for (const call of [() => a.plan(), () => a.merge('x'), () => a.perplexity('base', {}), () => a.generate('base', 'x', { maxTokens: NaN })]) await call().catch((e) => console.log(e.code + ' ' + e.message)); })";
  expect(run(process.execPath, '-e', wrong)).toMatch(
    /^Usage recipe is no text.*\nUsage out is no text.*\nUsage text is no text.*\nUsage maxTokens is NaN\.\n$/,
  );
  writeFileSync(join(work, 'typed.ts'), TYPED);
  const check = [
    '--noEmit',
    '--strict',
    '--module',
    'nodenext',
    '--target',
    'es2023',
    '--types',
    'node',
    '--skipLibCheck',
  ];
  const where = ['--typeRoots', join(ROOT, 'node_modules/@types'), 'typed.ts'];
  run(process.execPath, join(ROOT, 'node_modules/typescript/bin/tsc'), ...check, ...where);

  writeFileSync(join(work, 'example.js'), formats);
  const [count, recipe] = run(process.execPath, 'example.js').trim().split('\n');
  expect(count).toBe(`${tensors('base')} tensors`);
  expect(recipe).toBe('0 problems: merge_method: linear');
});
