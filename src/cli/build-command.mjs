/** Bundles the headless command for Node: one file, and one for each kind of thread. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { register } from 'tsx/esm/api';
import { build } from 'vite';

/** Workers of the browser are never started, and sha256 is the processor's own. */
const forNode = {
  name: 'amalgam-for-node',
  enforce: 'pre',
  resolveId(id, importer) {
    if (id.endsWith('?worker&url')) return `\0worker:${id}`;
    const isSha256 = id === 'hash-wasm' && importer?.endsWith('/src/sources/sha256.ts');
    if (!isSha256 && !/\/digest$/.test(id)) return undefined;
    return fileURLToPath(new URL('../host/node/sha256.ts', import.meta.url));
  },
  load: (id) => (id.startsWith('\0worker:') ? "export default '';" : undefined),
};

/** @param root the project's folder @param outDir takes `amalgam.mjs` and its threads @param say told how far it is */
export function buildCommand(root, outDir, say = () => {}) {
  const inputs = {
    amalgam: 'src/cli/main.ts',
    thread: 'src/worker/node-thread.ts',
    formats: 'src/formats/index.ts',
    library: 'src/cli/library.ts',
    'foreign-text': 'src/worker/node-foreign-text.ts',
    'mcp-server': 'src/cli/mcp-server.ts',
  };
  return bundleForNode(root, outDir, inputs, say);
}

/** @param inputs files below `root` by the name of their bundle @param say told how far it is, line by line */
export async function bundleForNode(root, outDir, inputs, say = () => {}) {
  const unregister = register();
  const { cpuKernels } = await import(new URL('../../assembly/vite-plugin.ts', import.meta.url).href);
  const { buildSteps } = await import(new URL('./build.ts', import.meta.url).href);
  await unregister();
  rmSync(outDir, { recursive: true, force: true });
  for (const [name, path] of Object.entries(inputs)) {
    await build({
      root,
      configFile: false,
      logLevel: 'warn',
      plugins: [forNode, cpuKernels(), ...(name === 'amalgam' ? [buildSteps('the command', say)] : [])],
      ssr: { noExternal: true, external: ['webgpu'] },
      build: {
        ssr: true,
        outDir,
        emptyOutDir: false,
        copyPublicDir: false,
        target: 'node20',
        rollupOptions: {
          checks: { bundlerTimings: false },
          input: { [name]: join(root, path) },
          output: {
            banner: name === 'amalgam' ? '#!/usr/bin/env node' : '',
            format: 'es',
            entryFileNames: '[name].mjs',
            // a module costs Node more to find and link than to compile
            codeSplitting: false,
          },
        },
      },
    });
  }
}
