import { beginLeaves } from '../sources/tree-hash';
import type { Destination } from './destination';

/** Writes a small file as a whole; a text in UTF-8. */
export async function writeWhole(
  destination: Destination,
  path: string,
  content: string | Uint8Array<ArrayBuffer>,
): Promise<void> {
  const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content;
  const hasher = beginLeaves();
  await hasher.update(bytes);
  const sink = await destination.create(path);
  await sink.write(bytes);
  await sink.close(await hasher.leaves());
}
