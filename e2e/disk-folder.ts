import { open, readdir, stat } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import type { ModelFolder } from '../src/sources/model-folder';

/** A folder on this machine's disk as the engine sees models; for checks that run in Node. */
export async function diskFolder(path: string, root: string): Promise<ModelFolder> {
  const names = (await readdir(root, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)).split(sep).join('/'))
    .sort();
  const files = await Promise.all(
    names.map(async (name) => {
      const file = join(root, name);
      const byteLength = (await stat(file)).size;
      return {
        path: name,
        byteLength,
        open: () => ({
          byteLength,
          async read(begin: number, end: number) {
            const handle = await open(file);
            try {
              const bytes = new Uint8Array(end - begin);
              const { bytesRead } = await handle.read(bytes, 0, bytes.length, begin);
              if (bytesRead !== bytes.length)
                throw new Error(`${file}: ${bytesRead} of ${bytes.length} bytes`);
              return bytes;
            } finally {
              await handle.close();
            }
          },
        }),
      };
    }),
  );
  return { path, origin: { kind: 'local' }, files };
}
