import { expect, test } from 'vitest';
import type { MeasureText } from './measure-state';
import { partStretches, textHashes } from './measure-texts';

const tales: MeasureText = {
  ...{ id: 'own tales', name: 'tales', text: 'tales '.repeat(1000), origin: 'own', chosen: true },
  sha256: { quick: 'beginning of tales', full: 'tales' },
};

test('a text shorter than the quick part is the same measurement either way, and one too short to be cut is whole', async () => {
  const { quick, full } = await textHashes('a few words');
  expect(quick).toBe(full);
  const short = { ...tales, text: 'a few words' };
  expect(partStretches(short, 'quick')).toEqual([{ text: 'a few words' }]);
  // of the others a third is reported
  const long = partStretches(tales, 'quick').reduce((n, of) => n + ('text' in of ? of.text.length : 0), 0);
  expect(long).toBeGreaterThan(1300);
  expect(long).toBeLessThan(1600);
});
