import { expect, test } from 'vitest';
import {
  ancestry,
  type FamilyMember,
  familyLines,
  familyOf,
  licenseFindings,
  licenseTerms,
} from './model-family';

const member = (id: string, license: string | undefined, ...parents: string[]): FamilyMember => ({
  ...{ id, parents },
  ...(license !== undefined && { license }),
});
const said = (family: FamilyMember[], inputs: string[], output = {}) =>
  licenseFindings(family, inputs, output).map(
    ({ severity, code, message }) => `${severity} ${code}: ${message}`,
  );

test('licenses that bar something are known by the ids of the Hub; others have to be read', () => {
  const bars = (license: string) => licenseTerms(license)?.bars;
  expect(bars('apache-2.0')).toEqual([]);
  expect(bars('cc-by-4.0')).toEqual([]);
  expect(bars('cc-by-nc-4.0')).toEqual(['nothing commercial']);
  expect(bars('cc-by-nd-4.0')).toEqual(['nothing derived']);
  expect(bars('cc-by-nc-nd-4.0')).toEqual(['nothing derived', 'nothing commercial']);
  expect(bars('apple-amlr')).toEqual(['nothing commercial']);
  for (const odd of ['other', 'unknown', 'grok2-community', 'no-such-license'])
    expect(licenseTerms(odd)).toBeUndefined();
});

test('a permissive license over an ancestor that is not: of an input, and of the output', () => {
  const family = [
    member('a/tuned', 'apache-2.0', 'a/middle'),
    member('a/middle', 'mit', 'a/root'),
    member('a/root', 'cc-by-nc-4.0'),
    member('b/free', 'mit'),
  ];
  expect(said(family, ['a/tuned', 'b/free'])).toEqual([
    'warning LicenseContradicts: a/tuned says apache-2.0, but comes from a/root (cc-by-nc-4.0): it allows nothing commercial.',
    'note LicenseAsks: Nothing commercial: a/root (cc-by-nc-4.0).',
  ]);
  expect(said(family, ['b/free'])).toEqual([]);
  expect(said(family, ['a/root', 'b/free'], { id: 'me/merge', license: 'mit' })[0]).toBe(
    'warning LicenseContradicts: me/merge says mit, but comes from a/root (cc-by-nc-4.0): it allows nothing commercial.',
  );
  expect(said(family, ['a/root', 'b/free'], { license: 'cc-by-nc-4.0' })).toEqual([
    'note LicenseAsks: Nothing commercial: a/root (cc-by-nc-4.0).',
  ]);
});

test('no derivatives at all', () => {
  const family = [member('a/tuned', 'mit', 'a/root'), member('a/root', 'cc-by-nd-4.0')];
  expect(said(family, ['a/tuned'])).toEqual([
    'warning LicenseForbids: No derivatives: a/root (cc-by-nd-4.0) does not allow that what is made from it is shared.',
    'warning LicenseContradicts: a/tuned says mit, but comes from a/root (cc-by-nd-4.0): it allows nothing derived.',
  ]);
});

test('a license that stays with what is made from a model, and those it may change to', () => {
  const over = (license: string, root: string) =>
    said([member('a/tuned', license, 'a/root'), member('a/root', root)], ['a/tuned']).filter((one) =>
      one.includes('Contradicts'),
    ).length;
  expect(over('apache-2.0', 'gpl-3.0')).toBe(1);
  expect(over('agpl-3.0', 'gpl-3.0')).toBe(0);
  expect(over('gpl-3.0', 'agpl-3.0')).toBe(1);
  expect(over('cc-by-sa-4.0', 'cc-by-sa-3.0')).toBe(0);
  expect(over('mit', 'cc-by-sa-4.0')).toBe(1);
  expect(over('apache-2.0', 'gemma')).toBe(1);
  expect(over('other', 'gemma')).toBe(0);
  expect(over('mit', 'other')).toBe(0);
  expect(over('llama3', 'llama3.1')).toBe(1);
  expect(over('bigscience-openrail-m', 'openrail')).toBe(1);
});

test('what Llama and Gemma ask for, and a name that does not begin as asked', () => {
  const family = [member('meta/L', 'llama3.1'), member('g/G', 'gemma')];
  const asked = said(family, ['meta/L', 'g/G'], { name: 'my-merge' });
  expect(asked[0]).toMatch(
    /^warning LicenseAsks: llama3\.1 .*copy of the Llama 3\.1 license.*“Built with Llama”.*begins with Llama, which my-merge does not\.$/,
  );
  expect(asked[1]).toMatch(/^note LicenseAsks: gemma .*Gemma Terms of Use/);
  for (const name of ['Llama-merge', 'llama_3', undefined]) {
    expect(said(family, ['meta/L'], name === undefined ? {} : { name })[0]).toMatch(/^note /);
  }
  const third = [member('meta/L', 'llama3')];
  expect(said(third, ['meta/L'], { name: 'Llama-merge' })[0]).toMatch(
    /^warning .*Built with Meta Llama 3.*begins with Llama 3,/,
  );
  expect(said(third, ['meta/L'], { name: 'Llama-3-merge' })[0]).toMatch(/^note/);
  expect(said([member('meta/L', 'llama2')], ['meta/L'], { name: 'x' })[0]).not.toContain('name');
});

test('licenses to be read, and models nothing is known of', () => {
  const family: FamilyMember[] = [
    { ...member('a/one', 'other', 'a/gone'), licenseName: 'my\u202elicense' },
    { ...member('a/gone', undefined), unread: 'absent' },
  ];
  expect(said(family, ['a/one'])).toEqual([
    'note LicenseUnread: Licenses of their own: a/one (other: my\\u{202e}license).',
    'note LicenseUnread: Nothing is known of a/gone, of which models here are made: gone or private.',
  ]);
});

test('the tree, each under what was made from it; circles end', () => {
  const family: FamilyMember[] = [
    { ...member('m', 'mit', 'a', 'b'), relation: 'merge' },
    { ...member('a', 'mit', 'root'), relation: 'finetune' },
    member('b', undefined, 'root', 'unlisted'),
    member('root', 'gemma'),
  ];
  expect(familyLines(family).map(({ depth, id, said: words }) => `${depth} ${id}: ${words}`)).toEqual([
    '0 m: mit, merge',
    '1 a: mit, finetune',
    '2 root: gemma',
    '1 b: no license named',
    '2 root: gemma',
    '2 unlisted: ',
  ]);
  expect(ancestry('m', family).map(({ id }) => id)).toEqual(['m', 'a', 'b', 'root']);
  const circle = [member('x', 'mit', 'y'), member('y', 'mit', 'x')];
  expect(familyLines(circle).map(({ id }) => id)).toEqual(['x', 'y', 'x']);
  expect(ancestry('x', circle)).toHaveLength(2);
  const both = familyOf([
    { family: [member('x', 'mit')] },
    { family: [member('z', 'mit'), member('x', 'gemma')] },
    {},
  ]);
  expect(both.map(({ id, license }) => `${id} ${license}`).sort()).toEqual(['x mit', 'z mit']);
});
