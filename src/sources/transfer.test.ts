import { expect, test } from 'vitest';
import type { AmalgamError } from '../errors';
import { announcedWaitMs, fetchOk, retrying } from './transfer';

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

test.each([
  ['a port that fetch refuses', {}, 'bad port'],
  ['a certificate of its own', { code: 'SELF_SIGNED_CERT_IN_CHAIN' }, 'NODE_EXTRA_CA_CERTS'],
  ['no TLS', { code: 'EPROTO' }, 'NODE_EXTRA_CA_CERTS'],
])('R29: %s: said at once, and not as a lost connection', async (_, more, words) => {
  const subject = { name: 'a file', host: 'hub.test' };
  let asked = 0;
  const transfer = {
    sleep: async () => {},
    fetch: async () => {
      asked++;
      throw new TypeError('fetch failed', { cause: Object.assign(new Error('bad port'), more) });
    },
  };
  const failed = await retrying(
    (signal) => fetchOk('https://hub.test/', { headers: {} }, subject, transfer, signal),
    subject,
    transfer,
  ).catch((thrown: unknown) => thrown as AmalgamError);
  if (failed instanceof Response) expect.unreachable();
  expect(`${failed.code} ${failed.message} ${failed.hint}`).toMatch(new RegExp(`^Offline .*${words}`));
  expect(asked).toBe(1);
});
