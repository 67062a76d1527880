import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Recipe } from '../formats/recipe';
import { readText, taskSource } from './input-files';
import { readRecipe } from './job';
import { calibrationNames, publishedTexts, readCalibrationTexts, renameTexts } from './recipe-texts';

const recipe: Recipe = {
  mergeMethod: 'gram',
  baseModel: 'base',
  models: [
    { model: 'a', parameters: { calibration: 'a.txt' } },
    { model: 'b', parameters: { calibration: 'self' } },
    { model: 'c', parameters: { calibration: 'nowhere.txt' } },
  ],
  parameters: { calibration: 'all.txt' },
  amalgam: {},
};

let first = '';
let second = '';
beforeAll(async () => {
  first = await mkdtemp(join(tmpdir(), 'amalgam-texts-'));
  second = await mkdtemp(join(tmpdir(), 'amalgam-texts-'));
  await writeFile(join(first, 'a.txt'), 'near');
  await writeFile(join(second, 'a.txt'), 'far');
  await writeFile(join(second, 'all.txt'), 'for all');
});
afterAll(async () => {
  for (const folder of [first, second]) await rm(folder, { recursive: true });
});

test('names every text but the one a model writes itself, once', () => {
  expect(calibrationNames(recipe)).toEqual(['all.txt', 'a.txt', 'nowhere.txt']);
});

test('reads those that are there, from the first place that has them', async () => {
  expect(await readCalibrationTexts(recipe, [first, second])).toEqual([
    { name: 'all.txt', text: 'for all' },
    { name: 'a.txt', text: 'near' },
  ]);
});

test('takes a .json file for an array of token ids, and nothing else', async () => {
  await writeFile(join(first, 'ids.json'), '[1, 403, 7]');
  await writeFile(join(first, 'other.json'), '["a"]');
  const named = (calibration: string): Recipe => ({ ...recipe, models: [], parameters: { calibration } });
  expect(await readCalibrationTexts(named('ids.json'), [first])).toEqual([
    { name: 'ids.json', text: [1, 403, 7] },
  ]);
  await expect(readCalibrationTexts(named('other.json'), [first])).rejects.toMatchObject({
    code: 'Usage',
    message: expect.stringContaining('other.json'),
  });
});

test('R60: texts from elsewhere are published by name, not by path', () => {
  const parameters = { calibration: '/home/me/secret project/all.txt' };
  const models = [
    { model: 'a', parameters: { calibration: 'below/all.txt' } },
    { model: 'b', parameters: { calibration: '../../me/all.txt' } },
  ];
  const own: Recipe = { ...recipe, models, parameters, amalgam: { imatrix: '/home/me/i.txt' } };
  const names = publishedTexts(own);
  const published = renameTexts(own, names);
  expect(calibrationNames(published)).toEqual(['all.txt', 'below/all.txt', '2-all.txt', 'i.txt']);
  expect(renameTexts(published, new Map([...names].map(([name, short]) => [short, name])))).toEqual(own);
});

test('R52: a recipe cannot have a device read', async () => {
  const device: Recipe = { ...recipe, models: [], parameters: { calibration: '/dev/zero' } };
  await expect(readCalibrationTexts(device, [first])).rejects.toMatchObject({
    code: 'NotFound',
    message: expect.stringContaining('/dev/zero cannot be read: it is not a file'),
  });
});

test('says what cannot be read', async () => {
  const folder: Recipe = { ...recipe, models: [], parameters: { calibration: '.' } };
  await expect(readCalibrationTexts(folder, [first])).rejects.toMatchObject({ code: 'NotFound' });
  for (const read of [() => readText('.', first), () => readRecipe(first)])
    await expect(read()).rejects.toMatchObject({
      code: 'NotFound',
      message: expect.stringMatching(/cannot be read: it is a folder\.$/),
    });
});

test.each([
  ['bytes of another encoding', Uint8Array.of(0x61, 0xe9, 0x62), 'NotUtf8'],
  ['UTF-16', new Uint8Array(Uint16Array.from('\ufeffabc', (char) => char.charCodeAt(0)).buffer), 'NotUtf8'],
  ['gzip', Uint8Array.of(0x1f, 0x8b, 8, 0, 0), 'NotUtf8'],
  ['a pointer', 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n', 'LfsPointer'],
])('a text that is %s is refused wherever it is given', async (_, content, code) => {
  await writeFile(join(first, 'a.jsonl'), content);
  const refused = expect.objectContaining({ code, message: expect.stringContaining('a.jsonl') });
  await expect(readText('a.jsonl', first)).rejects.toEqual(refused);
  await expect(taskSource('./a.jsonl', first)).rejects.toEqual(refused);
  const calibrated = { ...recipe, parameters: { calibration: 'a.jsonl' } };
  await expect(readCalibrationTexts(calibrated, [first])).rejects.toEqual(refused);
});
