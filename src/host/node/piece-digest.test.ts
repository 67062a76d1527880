import { createHash, randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { pieceDigest } from './piece-digest';

it('is the sha256 of what a piece held when it was handed over', async () => {
  for (const length of [2 ** 21, 1, 0]) {
    const memory = Uint8Array.from(randomBytes(length + 8));
    const piece = memory.subarray(8);
    const wanted = createHash('sha256').update(piece).digest('hex');
    const digest = pieceDigest(piece);
    piece.fill(0);
    expect(Buffer.from(await digest).toString('hex')).toBe(wanted);
  }
});
