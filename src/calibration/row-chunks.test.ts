import { describe, expect, it } from 'vitest';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { createQueue, type Queue } from '../forward/queue';
import { openGram } from './gram';
import { download, farthest, layerInputs, normals, tapped, upload } from './mathematics.test.support';
import { gramOracle } from './oracle.test.support';
import { enqueueProduct, rowChunks } from './row-chunks';

/** A queue that takes only short dispatches. */
const shortQueue = (queue: Queue, dispatchWork: number): Queue =>
  Object.create(queue, { dispatchWork: { value: dispatchWork } });

describe('work cut into short dispatches', () => {
  const engine = createCpuBackend();
  const queue = createQueue(engine);

  it('chunks of rows cover them once, bounded by work and by bytes', () => {
    expect(rowChunks(shortQueue(queue, 200 * 64 ** 2), 450, 64)).toEqual([
      { first: 0, rows: 200 },
      { first: 200, rows: 200 },
      { first: 400, rows: 50 },
    ]);
    expect(rowChunks(shortQueue(queue, 1), 100, 64).map((c) => c.rows)).toEqual([64, 36]);
    expect(rowChunks(shortQueue(queue, 1e15), 1000, 65536).map((c) => c.rows)).toEqual([256, 256, 256, 232]);
  });

  it('a product in parts of its columns', async () => {
    const [rows, width] = [7, 132];
    const [x, w] = [normals(rows * width, 1), normals(width ** 2, 2)].map((v) => Float32Array.from(v)) as [
      Float32Array,
      Float32Array,
    ];
    const y = upload(engine, new Float32Array(rows * width).fill(1));
    enqueueProduct(shortQueue(queue, 1), upload(engine, x), upload(engine, w), y, rows, width, {
      add: true,
      scale: 2,
    });
    const wanted = Float64Array.from({ length: rows * width }, (_, e) => {
      let sum = 0;
      for (let k = 0; k < width; k++)
        sum += x[Math.floor(e / width) * width + k]! * w[(e % width) * width + k]!;
      return 1 + 2 * sum;
    });
    expect(farthest(await download(engine, y, rows * width), wanted)).toBeLessThan(1e-6);
  });

  it('a Gram matrix in parts of its blocks', async () => {
    const [rows, width] = [20, 324];
    const x = layerInputs(rows, width, 3);
    const gram = openGram(engine, width, { kind: 'full' });
    gram.add({ ...tapped(engine, x, width), queue: shortQueue(createQueue(engine), 1) });
    expect(farthest(await gram.read(), gramOracle(x, rows, width))).toBeLessThan(2e-6);
  });
});
