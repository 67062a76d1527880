import { describe, expect, it } from 'vitest';
import { formFor, gramBytes } from './gram';

const MEBIBYTE = 2 ** 20;

describe('the form of a Gram matrix', () => {
  it.each([
    [2048, 256, { kind: 'full' }],
    [8192, 256, { kind: 'full' }],
    [8192, 128, { kind: 'blocks', width: 4096 }],
    [14336, 256, { kind: 'blocks', width: 7168 }],
    [14336, 4096, { kind: 'blocks', width: 7168 }],
    [28672, 256, { kind: 'blocks', width: 7168 }],
    [11008, 4096, { kind: 'full' }],
    // blocks stay multiples of 4: the last one is narrower
    [12012, 4096, { kind: 'blocks', width: 6008 }],
  ] as const)('width %i with buffers of %i MiB: %o', (width, mebibytes, form) => {
    expect(formFor({ maxBufferBytes: mebibytes * MEBIBYTE }, width, 'full')).toEqual(form);
    expect(formFor({ maxBufferBytes: mebibytes * MEBIBYTE }, width, 'diagonal')).toEqual({
      kind: 'diagonal',
    });
  });

  it('takes the bytes of its blocks', () => {
    expect(gramBytes(2048, { kind: 'full' })).toBe(16 * MEBIBYTE);
    expect(gramBytes(14336, { kind: 'blocks', width: 7168 })).toBe(2 * 7168 ** 2 * 4);
    expect(gramBytes(12012, { kind: 'blocks', width: 6008 })).toBe((6008 ** 2 + 6004 ** 2) * 4);
    expect(gramBytes(8192, { kind: 'diagonal' })).toBe(32768);
  });
});
