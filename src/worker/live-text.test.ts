import { expect, test, vi } from 'vitest';
import { canceled } from '../sources/cancellation';
import { openLiveText } from './live-text';

/** Work that lasts until it is stopped. */
const endless = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(canceled())));
const unready = () => Promise.reject(new Error('is not steered'));

test('a measurement has the model until a text, or another job, needs it, and it alone', async () => {
  const texts = openLiveText();
  const order: string[] = [];
  const measured = texts.measure((_, signal) => endless(signal));
  const told = measured.catch((thrown: unknown) => order.push((thrown as { code: string }).code));
  await expect(texts.measure(async () => 1)).rejects.toMatchObject({ code: 'Busy' });
  const written = texts.write(unready, async () => {
    order.push('begins');
    await expect(texts.measure(async () => 1)).rejects.toMatchObject({ code: 'Busy' });
    return 'text';
  });
  expect(await written).toBe('text');
  await told;
  expect(order).toEqual(['Canceled', 'begins']);

  const again = texts.measure((_, signal) => endless(signal)).catch(() => order.push('stopped'));
  await texts.release();
  await again;
  expect(order.at(-1)).toBe('stopped');
  expect(await texts.measure(async () => 2)).toBe(2);
});

test('the model is closed by what fails, and stays where a text was stopped', async () => {
  const texts = openLiveText();
  const closed: string[] = [];
  const failing = (thrown: Error) =>
    texts.write(unready, async ({ kept }) => {
      vi.spyOn(kept, 'close').mockImplementation(() => closed.push(thrown.message));
      throw thrown;
    });
  await expect(failing(canceled())).rejects.toMatchObject({ code: 'Canceled' });
  expect(closed).toEqual([]);
  await expect(failing(new Error('broken'))).rejects.toThrow('broken');
  expect(closed).toEqual(['broken']);
});
