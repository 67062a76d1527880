/** Compiles assembly/kernels to WebAssembly for `virtual:cpu-kernels`, in builds, the dev server and tests alike. */
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Plugin } from 'vite';

const HERE = dirname(fileURLToPath(import.meta.url));
const FOLDER = join(HERE, 'kernels');
const CACHE = join(HERE, '..', 'node_modules', '.cache', 'amalgam-kernels');
const FLAGS = [
  '-O3',
  '--noAssert',
  '--runtime',
  'stub',
  '--importMemory',
  '--maximumMemory',
  '65536',
  '--enable',
  'simd',
];
const ID = 'virtual:cpu-kernels';

/** Output of compiling assembly/kernels. */
export interface CompiledKernels {
  /** The module's bytes in base64. */
  wasm: string;
  /** The text of exports.d.ts: the types of what the module exports. */
  types: string;
}

/** By the hash of the sources: several parts of one build ask at once. */
const compiling = new Map<string, Promise<CompiledKernels>>();

/** The kernels; compiled once per content of the sources. */
export function compileKernels(): Promise<CompiledKernels> {
  const sources = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .sort();
  const hash = createHash('sha256')
    .update(FLAGS.join(' '))
    .update(readFileSync(fileURLToPath(import.meta.url)));
  for (const name of sources) hash.update(name).update(readFileSync(join(FOLDER, name)));
  const key = hash.digest('hex');
  const known = compiling.get(key) ?? compile(sources, join(CACHE, `${key}.json`));
  compiling.set(key, known);
  return known;
}

/** Those of the cache, else compiled into it. */
async function compile(sources: readonly string[], cached: string): Promise<CompiledKernels> {
  try {
    return JSON.parse(readFileSync(cached, 'utf8')) as CompiledKernels;
  } catch {
    // not compiled yet
  }
  const { default: asc } = await import('assemblyscript/asc');
  const files = new Map(sources.map((name) => [name, readFileSync(join(FOLDER, name), 'utf8')]));
  const made = new Map<string, string | Uint8Array>();
  const options = ['--outFile', 'kernels.wasm', '--bindings', 'raw', ...FLAGS];
  const { error, stderr } = await asc.main(
    [...sources.filter((name) => !name.startsWith('lib')), ...options],
    {
      readFile: (name: string) => files.get(name) ?? null,
      writeFile: (name: string, contents: string | Uint8Array) => {
        made.set(name, contents);
      },
      listFiles: () => [],
    },
  );
  const bytes = made.get('kernels.wasm');
  if (error || !bytes) throw new Error(`assembly/kernels does not compile: ${stderr.toString()}`);
  const compiled = {
    wasm: Buffer.from(bytes as Uint8Array).toString('base64'),
    types: exportTypes(String(made.get('kernels.d.ts'))),
  };
  mkdirSync(CACHE, { recursive: true });
  writeFileSync(cached, JSON.stringify(compiled));
  return compiled;
}

/** The compiler's own declarations, as the host calls the module: without its glue, where a `bool` is a number. */
function exportTypes(declarations: string): string {
  const signatures = [...declarations.matchAll(/export function (\w+\(.*\): \w+;)/g)].map(
    ([, signature]) => `    ${signature!.replaceAll('boolean', 'number')}`,
  );
  return `/** Written by the compiler of assembly/kernels (\`npx vitest run --project unit assembly -u\`). Addresses are bytes. */
declare module 'virtual:cpu-kernels' {
  /** The bytes of a WebAssembly module. */
  export const CPU_KERNELS: Uint8Array<ArrayBuffer>;
  export interface KernelExports {
${signatures.sort().join('\n')}
  }
}
`;
}

/**
 * Serves `virtual:cpu-kernels`: in a browser the module is a file of its own, which is there once whoever imports this; in
 * Node it is a part of the bundle.
 */
export function cpuKernels(): Plugin {
  return {
    name: 'amalgam-cpu-kernels',
    resolveId: (id) => (id === ID ? `\0${ID}` : undefined),
    async load(id) {
      if (id !== `\0${ID}`) return undefined;
      const { wasm } = await compileKernels();
      if (this.environment.config.consumer === 'server') {
        return `export const CPU_KERNELS = new Uint8Array(Buffer.from(${JSON.stringify(wasm)}, 'base64'));`;
      }
      const bytes = Buffer.from(wasm, 'base64');
      // named by its content: two servers of other sources may share the folder, and a page asks for it later
      const file = join(
        CACHE,
        `cpu-kernels-${createHash('sha256').update(bytes).digest('hex').slice(0, 16)}.wasm`,
      );
      writeFileSync(file, bytes);
      return `import url from ${JSON.stringify(`${file}?url`)};
const response = await fetch(url);
if (!response.ok) throw new Error(\`\${url}: \${response.status} \${response.statusText}\`);
export const CPU_KERNELS = new Uint8Array(await response.arrayBuffer());`;
    },
  };
}
