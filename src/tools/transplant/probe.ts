/** How long making rows takes here, by a moment's work. */

import type { Backend } from '../../backend/backend';
import { createQueue } from '../../forward/queue';
import { makeTogether } from './fit';
import { openProducts } from './products';
import { pursue, rowOf } from './pursuit';

/** Of the trial: rows of the dictionary, their width, rows that are made, and rows that each is made of. */
const TRIAL = { count: 2048, width: 512, rows: 64, k: 8 };

/** Seconds of so many multiply-adds. @throws what the engine throws, `Canceled` */
export async function secondsFor(
  multiplyAdds: number,
  engine: Backend,
  signal: AbortSignal,
): Promise<number> {
  const { count, width, rows, k } = TRIAL;
  const values = Float32Array.from({ length: count * width }, (_, i) => Math.sin(i * i + i));
  const dictionary = { values, count, width };
  const x = { ...dictionary, values: values.map((value, i) => value + Math.cos(i)) };
  const queue = createQueue(engine);
  const products = openProducts(queue, dictionary);
  try {
    const trial = async () => {
      const makings = Array.from({ length: rows }, (_, i) => pursue(rowOf(x, i), dictionary, k));
      const begun = performance.now();
      await queue.heeding(signal, () => makeTogether(makings, products, width));
      return (performance.now() - begun) / 1000;
    };
    await trial();
    return (multiplyAdds * (await trial())) / (rows * k * count * width);
  } finally {
    products.close();
  }
}
