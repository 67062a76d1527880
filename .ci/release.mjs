/**
 * Checks that the version in package.json can be released: `npm run release`. Everything is tested from a clean tree, built and
 * packed; the tarball is left in the project's folder. Nothing is published: that is a tag, and the workflows.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';

const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
const run = (file, ...args) => execFileSync(file, args, { stdio: 'inherit' });
const read = (file, ...args) => execFileSync(file, args, { encoding: 'utf8' }).trim();

function demand(holds, message) {
  if (holds) return;
  process.stderr.write(`${message}\n`);
  process.exit(1);
}

demand(read('git', 'status', '--porcelain') === '', 'The working tree has changes: commit them first.');
demand(
  read('git', 'tag', '--list', `v${version}`) === '',
  `v${version} is tagged already: raise the version.`,
);
const changes = readFileSync('CHANGELOG.md', 'utf8');
demand(changes.includes(`## ${version}`), `CHANGELOG.md has no section “## ${version}”.`);

run('npm', 'ci');
run('npm', 'test');
run('npm', 'run', 'build');
for (const file of ['index.html', 'sw.js', 'THIRD-PARTY-NOTICES.txt'])
  demand(existsSync(join('dist', file)), `The build has no ${file}.`);
demand(!existsSync(join('dist', 'samples', 'source')), 'The build has the sources of the samples.');

const tarball = read('npm', 'run', '--silent', 'package').split('\n').at(-1);
const folder = mkdtempSync(join(tmpdir(), 'amalgam-release-'));
try {
  run('npm', 'install', '--prefix', folder, '--offline', '--no-audit', '--no-fund', tarball);
  const said = read(join(folder, 'node_modules', '.bin', 'amalgam'), '--version');
  demand(said === version, `The packed command says it is ${said}, and not ${version}.`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
demand(read('git', 'status', '--porcelain') === '', 'The checks changed files: commit them first.');
process.stdout.write(`${tarball} is ready. Now: git tag v${version} && git push --tags\n`);
