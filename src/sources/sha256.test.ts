import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import { bufferSource } from './buffer-source';
import { sha256Of } from './sha256';

it.each([0, 1, 8 * 1024 * 1024, 8 * 1024 * 1024 + 1, 20_000_000])(
  '%i bytes hash as Node hashes them',
  async (n) => {
    const bytes = new Uint8Array(n);
    for (let i = 0; i < n; i++) bytes[i] = (i * 31) ^ (i >> 7);
    let seen = 0;
    const hash = await sha256Of(bufferSource(bytes), undefined, (more) => {
      seen += more;
    });
    expect(hash).toBe(createHash('sha256').update(bytes).digest('hex'));
    expect(seen).toBe(n);
  },
);
