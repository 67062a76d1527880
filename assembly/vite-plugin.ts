/** Compiles assembly/kernels to WebAssembly for `virtual:cpu-kernels`, in builds, the dev server and tests alike. */
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Plugin } from 'vite';

const HERE = dirname(fileURLToPath(import.meta.url));
const FOLDER = join(HERE, 'kernels');
const CACHE = join(HERE, '..', 'node_modules', '.cache', 'amalgam-kernels');
const FLAGS = ['-O3', '--noAssert', '--runtime', 'stub', '--importMemory', '--enable', 'simd'];
const ID = 'virtual:cpu-kernels';

/** The module's bytes in base64; compiled once per content of the sources. */
export async function compileKernels(): Promise<string> {
  const sources = readdirSync(FOLDER).filter((name) => name.endsWith('.ts'));
  const hash = createHash('sha256').update(FLAGS.join(' '));
  for (const name of sources) hash.update(name).update(readFileSync(join(FOLDER, name)));
  const cached = join(CACHE, `${hash.digest('hex')}.base64`);
  try {
    return readFileSync(cached, 'utf8');
  } catch {
    // not compiled yet
  }
  const { default: asc } = await import('assemblyscript/asc');
  const files = new Map(sources.map((name) => [name, readFileSync(join(FOLDER, name), 'utf8')]));
  let bytes: string | Uint8Array | undefined;
  const { error, stderr } = await asc.main(['index.ts', '--outFile', 'kernels.wasm', ...FLAGS], {
    readFile: (name: string) => files.get(name) ?? null,
    writeFile: (_: string, contents: string | Uint8Array) => {
      bytes = contents;
    },
    listFiles: () => [],
  });
  if (error || !bytes) throw new Error(`assembly/kernels does not compile: ${stderr.toString()}`);
  const base64 = Buffer.from(bytes as Uint8Array).toString('base64');
  mkdirSync(CACHE, { recursive: true });
  writeFileSync(cached, base64);
  return base64;
}

/** Serves `virtual:cpu-kernels`. */
export function cpuKernels(): Plugin {
  return {
    name: 'amalgam-cpu-kernels',
    resolveId: (id) => (id === ID ? `\0${ID}` : undefined),
    load: async (id) =>
      id === `\0${ID}` ? `export const CPU_KERNELS = ${JSON.stringify(await compileKernels())};` : undefined,
  };
}
