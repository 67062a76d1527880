/** Bundles the headless command for Node: one module, and one for the threads that compute. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { register } from 'tsx/esm/api';
import { build } from 'vite';

/** Threads are found beside the command, and sha256 is the processor's own. */
const forNode = {
  name: 'amalgam-for-node',
  enforce: 'pre',
  resolveId(id, importer) {
    if (id.endsWith('?worker&url')) return `\0thread:${id}`;
    if (id.endsWith('/start-thread')) {
      return fileURLToPath(new URL('../host/node/start-thread.ts', import.meta.url));
    }
    const isSha256 = id === 'hash-wasm' && importer?.endsWith('/src/sources/sha256.ts');
    return isSha256 ? fileURLToPath(new URL('../host/node/hash-wasm.ts', import.meta.url)) : undefined;
  },
  load: (id) => (id.startsWith('\0thread:') ? "export default './thread.mjs';" : undefined),
};

/** @param root the project's folder @param outDir takes `amalgam.mjs` and `thread.mjs` */
export async function buildCommand(root, outDir) {
  const unregister = register();
  const { cpuKernels } = await import(new URL('../../assembly/vite-plugin.ts', import.meta.url).href);
  await unregister();
  await build({
    root,
    configFile: false,
    logLevel: 'warn',
    plugins: [forNode, cpuKernels()],
    ssr: { noExternal: true, external: ['playwright', 'vite'] },
    build: {
      ssr: true,
      outDir,
      emptyOutDir: true,
      copyPublicDir: false,
      target: 'node20',
      rollupOptions: {
        input: { amalgam: join(root, 'src/cli/main.ts'), thread: join(root, 'src/worker/node-thread.ts') },
        output: { format: 'es', entryFileNames: '[name].mjs', chunkFileNames: '[name]-[hash].mjs' },
      },
    },
  });
}
