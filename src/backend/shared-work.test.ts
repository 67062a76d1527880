import { describe, expect, test } from 'vitest';
import { shareOut } from './shared-work';

/** A worker that waits `steps(item)` turns for each item, and writes down what it does. */
function worker(name: string, log: string[], steps: (item: number) => number) {
  return (item: number) => {
    log.push(`${name} opens ${item}`);
    return {
      async run() {
        for (let i = 0; i < steps(item); i++) await undefined;
        if (item < 0) throw new Error(`item ${item}`);
        return item * item;
      },
      close: () => log.push(`${name} closes ${item}`),
    };
  };
}

describe('items shared out', () => {
  test('results are in the order of the items; each is opened and closed once', async () => {
    const items = Array.from({ length: 20 }, (_, i) => i);
    for (const count of [1, 2, 3, 7]) {
      const log: string[] = [];
      const workers = Array.from({ length: count }, (_, w) =>
        worker(`${w}`, log, (i) => (i * 7 + w * 3) % 11),
      );
      expect(await shareOut(items, workers)).toEqual(items.map((i) => i * i));
      expect(log.map((line) => line.slice(2)).sort()).toEqual(
        items.flatMap((i) => [`opens ${i}`, `closes ${i}`]).sort(),
      );
    }
  });

  test('every worker has its first item before one looks ahead', async () => {
    const log: string[] = [];
    await shareOut(
      [1, 2, 3, 4],
      ['a', 'b'].map((name) => worker(name, log, () => 5)),
    );
    expect(log.slice(0, 2)).toEqual(['a opens 1', 'b opens 2']);
  });

  test('after a failure no more is taken, and all that was opened is closed', async () => {
    const log: string[] = [];
    const items = [1, -2, 3, 4, 5, 6, 7, 8, 9];
    const workers = ['a', 'b'].map((name) => worker(name, log, (i) => (i < 0 ? 2 : 9)));
    await expect(shareOut(items, workers)).rejects.toThrow('item -2');
    const opened = log.filter((line) => line.includes('opens')).length;
    expect(opened).toBeLessThan(6);
    expect(log.filter((line) => line.includes('closes'))).toHaveLength(opened);
  });
});
