import { expect, it } from 'vitest';
import { bufferSource } from './buffer-source';
import { beginSha256, sha256Of } from './sha256';
import { sha256Thread } from './sha256-thread';

const MIB = 2 ** 20;

it('hashes what it is given, in order, in this thread and then in its own; digests of what came before, asked for on the way', async () => {
  const bytes = new Uint8Array(40 * MIB);
  for (let at = 0; at < bytes.length; at += 65_536) crypto.getRandomValues(bytes.subarray(at, at + 65_536));
  const hash = sha256Thread(await beginSha256());
  const digests: [Promise<string>, string][] = [];
  try {
    let at = 0;
    for (const length of [5, 3 * MIB, 14 * MIB, 12 * MIB + 1, 0, 70_000]) {
      const piece = bytes.slice(at, at + length);
      await hash.update(piece);
      piece.fill(0); // a copy was taken
      at += length;
      digests.push([hash.digest(), await sha256Of(bufferSource(bytes.slice(0, at), 'so far'))]);
    }
    for (const [digest, expected] of digests) expect(await digest).toBe(expected);
  } finally {
    hash.close();
  }
  await expect(hash.digest()).rejects.toMatchObject({ code: 'Cancelled' });
});
