/**
 * Packs the headless command, its calls and `amalgam/formats` as one npm package without dependencies, prebuilt:
 * `npm run package`. Prints the path of the tarball.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PACKAGE = join(ROOT, 'dist-package');
const TYPES = [join('src', 'formats', 'index.ts'), join('src', 'cli', 'library-types.ts')];
const node = (...args) =>
  execFileSync(process.execPath, args, { cwd: ROOT, stdio: ['ignore', 'ignore', 'inherit'] });

// made where its sources are newer
node(join('src', 'cli', 'amalgam.mjs'), '--version');

rmSync(PACKAGE, { recursive: true, force: true });
mkdirSync(PACKAGE);
const take = (path) => cpSync(join(ROOT, path), join(PACKAGE, path), { recursive: true });
for (const path of ['dist-command', join('public', 'samples', 'texts'), 'LICENSE']) take(path);
const skill = readFileSync(join(ROOT, 'hosting', 'SKILL.md'), 'utf8');
writeFileSync(join(PACKAGE, 'SKILL.md'), skill);
// the project's own page is about its studio, scripts and samples, which are not in here
const examples = readFileSync(join(ROOT, 'README.md'), 'utf8').match(/```js\n[\s\S]*?```\n/g);
const page = [skill.replace(/^---\n[\s\S]*?\n---\n\s*/, ''), ...examples].join('\n');
writeFileSync(join(PACKAGE, 'README.md'), page);

const project = join(ROOT, 'tsconfig.json');
const { compilerOptions } = JSON.parse(readFileSync(project, 'utf8'));
const types = {
  ...compilerOptions,
  ...{ noEmit: false, incremental: false, declaration: true, emitDeclarationOnly: true },
  ...{
    rootDir: join(ROOT, 'src'),
    outDir: join(PACKAGE, 'types'),
    types: ['node'],
    typeRoots: [join(ROOT, 'node_modules/@types')],
  },
};
delete types.tsBuildInfoFile;
const config = join(PACKAGE, 'tsconfig.json');
writeFileSync(
  config,
  JSON.stringify({ compilerOptions: types, files: TYPES.map((file) => join(ROOT, file)) }),
);
node(join('node_modules', 'typescript', 'bin', 'tsc'), '--project', config);
rmSync(config);
for (const path of readdirSync(types.outDir, { recursive: true, encoding: 'utf8' })) {
  const file = join(types.outDir, path);
  if (file.endsWith('.d.ts')) writeFileSync(file, withExtensions(readFileSync(file, 'utf8'), dirname(file)));
}

/** Declarations whose imports Node's own resolution finds too: `./dtype` becomes `./dtype.js`. */
function withExtensions(text, folder) {
  return text.replace(/((?:from|import\() ?['"])(\.[^'"]+)/g, (_, before, name) => {
    const place = join(folder, name);
    const isFile = existsSync(`${place}.d.ts`);
    return `${before}${name}${isFile ? '.js' : existsSync(join(place, 'index.d.ts')) ? '/index.js' : ''}`;
  });
}

const { name, version, description, license, repository, bugs, engines, optionalDependencies } = JSON.parse(
  readFileSync(join(ROOT, 'package.json'), 'utf8'),
);
const manifest = {
  ...{ name, version, description, license, repository, bugs, type: 'module', engines },
  bin: { amalgam: 'dist-command/bin/amalgam.mjs' },
  exports: {
    '.': { types: './types/cli/library-types.d.ts', default: './dist-command/bin/library.mjs' },
    './formats': { types: './types/formats/index.d.ts', default: './dist-command/bin/formats.mjs' },
  },
  // for --engine webgpu
  peerDependencies: { webgpu: optionalDependencies.webgpu },
  peerDependenciesMeta: { webgpu: { optional: true } },
};
writeFileSync(join(PACKAGE, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
const target = process.argv[2] ?? ROOT;
const packed = execFileSync(
  'npm',
  ['pack', PACKAGE, '--pack-destination', target, '--json', '--loglevel', 'error'],
  {
    cwd: ROOT,
    encoding: 'utf8',
  },
);
const [{ filename }] = Object.values(JSON.parse(packed));
process.stdout.write(`${join(target, filename)}\n`);
