import { expect, test } from 'vitest';
import { errorDetails } from '../parts/Message';
import { initialState } from './studio-state';

const details = (message: string) =>
  errorDetails({ code: 'HubError', message, hint: 'Do this.' }, initialState);

test('names the error, the remedy, the version and the recipe', () => {
  const text = details('It failed.');
  expect(text).toContain('HubError: It failed.\nDo this.');
  expect(text).toMatch(/Amalgam .*\n.*Browser: .*\n.*Recipe: /s);
});

test.each([
  'hf_abcdefghijklmnopqrstuvwxyz0123456789',
  'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl',
  'Bearer s3cr3t-token',
  'https://hub.example/callback?code=s3cr3t&state=s3cr3t',
])('takes out the secret in %s', (secret) => {
  const text = details(`The request with ${secret} failed.`);
  expect(text).toContain('[removed]');
  expect(text).toContain('failed.');
  expect(text).not.toMatch(/s3cr3t|abcdefghijkl|eyJhbGci/);
});

test('a long quotation of a file is cut off', () => {
  expect(details(`bad: ${'x'.repeat(5000)}`).match(/x+/)![0].length).toBeLessThan(600);
});
