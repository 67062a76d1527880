import { expect, test, vi } from 'vitest';
import { canceled } from '../sources/cancellation';
import { openLiveText } from './live-text';

const unready = () => Promise.reject(new Error('is not steered'));

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
