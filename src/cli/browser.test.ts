import { expect, test } from 'vitest';
import { hasSandbox } from './browser';

test('Chromium has its sandbox unless the command runs as root, where there is none', () => {
  expect([0, 1000, 65_534].map((uid) => hasSandbox(uid))).toEqual([false, true, true]);
});
