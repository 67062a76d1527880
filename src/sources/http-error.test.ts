import { describe, expect, test } from 'vitest';
import { AmalgamError } from '../errors';
import { reasonOf, refusal } from './http-error';

const subject = { name: 'owner/name', host: 'hub.test', page: 'https://hub.test/owner/name' };
const reason = (code: string | null, said = '') => ({ code, said });
const of = (
  status: number,
  why = reason(null),
  tokenSent = true,
  kind: 'reads' | 'writes' | 'listed' = 'reads',
  place?: string,
) => refusal(status, why, kind === 'reads' ? subject : { ...subject, [kind]: true }, tokenSent, place);

const STATUSES = [
  400, 401, 402, 403, 404, 405, 406, 407, 409, 410, 412, 413, 416, 418, 422, 423, 428, 431, 451,
];
const CODES = [null, 'GatedRepo', 'RepoNotFound', 'RevisionNotFound', 'EntryNotFound', 'SomethingNew'];
const SAID = 'This organization asks for SSO.';
/** Of codes and statuses whose meaning is whole without the hub's sentence. */
const KNOWN =
  /is gated|no such revision|does not exist\.|was not found on|does not accept your access token\.|asks for an access token|needs an access token/;

describe('R29: a status is no reason', () => {
  test('whatever the status and the code: gated by its code only, the sentence of the hub quoted, and a next step', () => {
    for (const status of STATUSES) {
      for (const code of CODES) {
        for (const tokenSent of [true, false]) {
          for (const kind of ['reads', 'writes', 'listed'] as const) {
            const what = `${status} ${code} token ${tokenSent} ${kind}`;
            const error = of(status, reason(code, SAID), tokenSent, kind);
            expect(error, what).toBeInstanceOf(AmalgamError);
            expect(error.code === 'Gated', what).toBe(code === 'GatedRepo');
            if (!KNOWN.test(error.message)) expect(error.message, what).toContain(SAID);
            expect(error.hint, what).not.toMatch(/try again later|start again later/i);
            // whoever is to give a token is told where, and nobody else
            const inCommand = of(status, reason(code, SAID), tokenSent, kind, ' in HF_TOKEN');
            const isAsked = /\bgive [^,;.]*(token|one)\b/i.test(error.hint);
            expect(inCommand.hint.includes(' in HF_TOKEN'), what).toBe(isAsked);
            expect(error.hint, what).not.toContain('HF_TOKEN');
            // what the hub has listed is not misspelled
            if (kind === 'listed' && status !== 401) expect(error.hint, what).not.toContain('spelling');
            // a status alone is no word about the token
            if (kind === 'writes' && status === 403 && code === null)
              expect(error.message, what).not.toContain('token');
            const silent = of(status, reason(code), tokenSent, kind);
            expect(silent.message, what).not.toContain('It says');
            expect(silent.hint.length, what).toBeGreaterThan(10);
          }
        }
      }
    }
  });

  test.each([
    [
      403,
      'Access to this resource is disabled.',
      'HubError',
      /has disabled owner\/name/,
      /Choose another model/,
    ],
    [
      401,
      'Access to this resource is disabled.',
      'HubError',
      /has disabled owner\/name/,
      /Choose another model/,
    ],
    [403, SAID, 'Unauthorized', /does not give out owner\/name \(status 403\).*SSO/, /Do what it asks/],
    [403, '', 'Unauthorized', /does not give out owner\/name \(status 403\)\.$/, /says no reason/],
    [451, '', 'HubError', /for legal reasons/, /does not help/],
    [413, 'Too large', 'HubError', /status 413.*Too large/, /same answer/],
    [401, '', 'Unauthorized', /does not accept your access token/, /new one/],
    [404, '', 'NotFound', /not found on hub\.test, or it is private/, /Check the spelling/],
  ])('%i “%s” is %s', (status, said, code, message, hint) => {
    expect(of(status, reason(null, said))).toMatchObject({
      code,
      message: expect.stringMatching(message),
      hint: expect.stringMatching(hint),
    });
  });

  test('the reason is the header, else what the JSON says, in one printable line', () => {
    const headers = { 'X-Error-Code': 'GatedRepo', 'X-Error-Message': 'from the header' };
    expect(reasonOf(new Response('', { headers }), '{"error":"from the body"}')).toEqual({
      code: 'GatedRepo',
      said: 'from the header',
    });
    expect(reasonOf(new Response(''), '{"error":"from\\nthe body"}').said).not.toContain('\n');
    expect(reasonOf(new Response(''), '<html>').said).toBe('');
  });
});
