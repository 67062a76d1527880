import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { AmalgamError } from '../errors';
import {
  checkTensorName,
  compareCodePoints,
  displayName,
  outputFolderName,
  printableJson,
  printableText,
  publishOrder,
  safeRelativePath,
} from './names';

function codeOf(action: () => unknown): string {
  try {
    action();
  } catch (thrown) {
    if (thrown instanceof AmalgamError) return thrown.code;
    throw thrown;
  }
  return 'ok';
}

describe('R14: safeRelativePath', () => {
  test.each([
    ['a way up', '../x'],
    ['a way up in the middle', 'a/../../x'],
    ['a way up at the end', 'a/..'],
    ['this folder', './x'],
    ['absolute', '/x'],
    ['an empty part', 'a//x'],
    ['a trailing slash', 'a/'],
    ['a drive', 'C:\\x'],
    ['a drive with a slash', 'C:/x'],
    ['a UNC path', '\\\\host\\x'],
    ['a backslash', 'a\\x'],
    ['an address', 'https://example.org/x'],
    ['a data address', 'data:text/html,x'],
    ['percent-encoded dots', '%2e%2e/x'],
    ['a percent-encoded slash', 'a%2Fx'],
    ['twice percent-encoded', '%252e%252e/x'],
    ['empty', ''],
    ['NUL, the device', 'NUL'],
    ['a device with an extension', 'sub/con.safetensors'],
    ['a superscript device', 'COM¹'],
    ['NUL, the character', 'a\0.safetensors'],
    ['a line feed', 'a\nb'],
    ['a trailing dot', 'model.safetensors.'],
    ['a trailing space', 'model.safetensors '],
    ['an alternate stream', 'model.safetensors:evil'],
    ['a wildcard', 'model*.safetensors'],
    ['half a surrogate pair', 'a\ud800'],
    ['an over-long part', 'x'.repeat(256)],
    ['an over-long path', `${'xy/'.repeat(400)}x`],
  ])('refuses %s', (_, path) => {
    expect(codeOf(() => safeRelativePath(path))).toBe('UnsafePath');
  });

  test.each([
    'model.safetensors',
    'model-00001-of-00002.safetensors',
    'sub/folder/model.safetensors',
    '.gitattributes',
    'naïve 文件.safetensors',
    '__proto__',
    'constructor',
    'console.json',
    '100%.txt',
  ])('takes %s', (path) => {
    expect(safeRelativePath(path)).toBe(path);
  });
});

describe('R10: checkTensorName', () => {
  test('dangerous names are refused, odd ones are fine', () => {
    expect(codeOf(() => checkTensorName('__metadata__', 'f'))).toBe('UnsafeName');
    expect(codeOf(() => checkTensorName('a\0b', 'f'))).toBe('UnsafeName');
    expect(codeOf(() => checkTensorName('a\udc00', 'f'))).toBe('UnsafeName');
    expect(codeOf(() => checkTensorName('x'.repeat(1_000_000), 'f'))).toBe('UnsafeName');
    for (const name of ['__proto__', 'constructor', '', 'text_encoder:0:down', '\u202egnp.exe', '😀']) {
      expect(codeOf(() => checkTensorName(name, 'f'))).toBe('ok');
    }
  });
});

describe('R10: displayName', () => {
  test('what has no ink is spelled out', () => {
    expect(displayName('a\u202eb\u200bc\0d\ne\ufeff\ud800\u2028')).toBe(
      'a\\u{202e}b\\u{200b}c\\u{0}d\\u{a}e\\u{feff}\\u{d800}\\u{2028}',
    );
    expect(displayName('naïve 文件 😀 <b>')).toBe('naïve 文件 😀 <b>');
  });

  test('a long name keeps both ends', () => {
    const shown = displayName(`begin${'x'.repeat(1000)}end`);
    expect(shown).toMatch(/^begin.*…x+end$/);
    expect(shown.length).toBeLessThanOrEqual(200);
  });

  test('never contains an invisible character', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(0x10ffff), { maxLength: 300 }), (points) => {
        const name = String.fromCodePoint(...points);
        expect(displayName(name)).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u);
      }),
    );
  });
});

describe('outputFolderName', () => {
  test.each([
    ['ties: base + kitchen', 'ties-base-kitchen'],
    ['../../etc/passwd', 'etc-passwd'],
    ['Qualität № 1', 'Qualitat-No-1'],
    ['NUL', 'merged-NUL'],
    ['\u202e', 'merged'],
    ['', 'merged'],
  ])('%j becomes %s', (text, name) => {
    expect(outputFolderName(text)).toBe(name);
  });

  test('is always a safe path of one part', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const name = outputFolderName(text);
        expect(safeRelativePath(name)).toBe(name);
        expect(name).toMatch(/^[\w][\w.-]{0,90}$/);
      }),
    );
  });
});

test('compareCodePoints orders as UTF-8 bytes do', () => {
  const text = fc.string({ unit: 'grapheme', maxLength: 6 });
  fc.assert(
    fc.property(text, text, (a, b) => {
      expect(compareCodePoints(a, b)).toBe(Math.sign(Buffer.compare(Buffer.from(a), Buffer.from(b))));
    }),
    {
      examples: [
        ['\uffee', '😀'],
        ['a', 'ab'],
        ['', ''],
      ],
    },
  );
});

describe('R54: what is printed', () => {
  test('commands nothing on a terminal, and keeps its lines', () => {
    expect(printableText('a\x1b]0;title\x07\x9b2J\r\u202eb\n\tc')).toBe(
      'a\\u{1b}]0;title\\u{7}\\u{9b}2J\\u{d}\\u{202e}b\n\tc',
    );
  });

  test('as JSON is the same value for whoever parses it', () => {
    const value = { name: 'a\x1b\x9b\u2028\u{e0001}\u202eb\n', list: [1] };
    const text = printableJson(value);
    expect(text).toBe(printableText(text));
    expect(JSON.parse(text)).toEqual(value);
  });
});

test('what makes files a model gets its name last', () => {
  expect(
    publishOrder(['b-1.safetensors', 'model.safetensors.index.json', 'a.json', 'b-2.safetensors', 'z']),
  ).toEqual(['a.json', 'z', 'b-1.safetensors', 'b-2.safetensors', 'model.safetensors.index.json']);
});
