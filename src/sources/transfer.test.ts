import { expect, test } from 'vitest';
import { announcedWaitMs } from './transfer';

const NOW = Date.UTC(2026, 0, 1);

test.each([
  [{ RateLimit: '"resolvers";r=0;t=55' }, 55_000],
  [{ RateLimit: '"api"; r=0; t=246' }, 246_000],
  [{ RateLimit: '"api";r=0;t=3', 'Retry-After': '9' }, 3_000],
  [{ 'Retry-After': '9' }, 9_000],
  [{ 'Retry-After': new Date(NOW + 90_000).toUTCString() }, 90_000],
  [{ 'Retry-After': new Date(NOW - 90_000).toUTCString() }, 0],
  [{ 'Retry-After': 'soon' }, undefined],
  [{ RateLimit: 'soon' }, undefined],
  [{}, undefined],
])('%j announces %s ms', (headers, expected) => {
  expect(announcedWaitMs(new Headers(headers as Record<string, string>), NOW)).toBe(expected);
});
