import { mkdir, open, readdir, stat, writeFile } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { DTYPE_BITS } from '../src/formats/dtype';
import { headerLength, parseSafetensorsHeader } from '../src/formats/safetensors-header';
import { buildSafetensorsHeader } from '../src/formats/safetensors-write';
import { memoryFolder } from '../src/inputs/memory-models.test.support';
import type { ModelFolder } from '../src/sources/model-folder';

/** The sample family on disk. */
export const SAMPLES = join(import.meta.dirname, '../public/samples');
/** Of the sample family. */
const VOCABULARY = 1024;
const RANK = 8;

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

/** How much of a model is left out: layers behind the first ones, and all but one part in `narrower` of every width. */
export interface SmallSize {
  layers?: number;
  narrower?: number;
}

/**
 * A model or an adapter of the sample family made small, in memory: for tests of how models are treated, whatever they
 * have learned. Vocabulary and rank stay.
 */
export async function smallSample(path: string, root: string, size: SmallSize): Promise<ModelFolder> {
  const folder = await diskFolder(path, root);
  const files = await Promise.all(
    folder.files.map(async (file) => {
      const bytes = await file.open().read(0, file.byteLength);
      if (file.path.endsWith('.safetensors')) return [file.path, smallFile(bytes, size)] as const;
      return [file.path, file.path === 'config.json' ? smallConfig(bytes, size) : bytes] as const;
    }),
  );
  return memoryFolder(path, Object.fromEntries(files));
}

/** The same in a new folder of the disk. */
export async function writeSmallSample(name: string, folder: string, size: SmallSize): Promise<void> {
  const { files } = await smallSample(name, join(SAMPLES, name), size);
  await mkdir(folder, { recursive: true });
  for (const { path, byteLength, open } of files)
    await writeFile(join(folder, path), await open().read(0, byteLength));
}

function smallConfig(bytes: Uint8Array, { layers, narrower = 1 }: SmallSize): object {
  const config = JSON.parse(new TextDecoder().decode(bytes)) as Record<string, number>;
  for (const width of ['hidden_size', 'intermediate_size', 'head_dim']) config[width]! /= narrower;
  return layers === undefined ? config : { ...config, num_hidden_layers: layers };
}

function smallFile(file: Uint8Array<ArrayBuffer>, size: SmallSize): Uint8Array<ArrayBuffer> {
  const { layers = Infinity, narrower = 1 } = size;
  const end = 8 + headerLength(file.subarray(0, 8), file.length);
  const { tensors, metadata } = parseSafetensorsHeader(file.subarray(8, end), file.length, 'a model');
  const smaller = (extent: number) => (extent === VOCABULARY || extent === RANK ? extent : extent / narrower);
  const small = [...tensors.values()]
    .filter(({ name }) => Number(/\.layers\.(\d+)\./.exec(name)?.[1] ?? 0) < layers)
    .map(({ name, dtype, shape, begin }) => {
      const columns = shape.at(-1)!;
      const shapeNow = shape.map(smaller);
      const width = (DTYPE_BITS[dtype] / 8) * shapeNow.at(-1)!;
      const rows = Array.from({ length: shape.length === 1 ? 1 : shapeNow[0]! }, (_, row) => {
        const at = begin + (row * columns * DTYPE_BITS[dtype]) / 8;
        return file.subarray(at, at + width);
      });
      return { name, dtype, shape: shapeNow, byteLength: width * rows.length, rows };
    });
  const header = buildSafetensorsHeader(small, Object.fromEntries(metadata));
  return Uint8Array.from(Buffer.concat([header, ...small.flatMap(({ rows }) => rows)]));
}
