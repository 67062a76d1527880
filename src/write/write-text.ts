import type { Destination } from './destination';

/** Writes a small file as a whole, in UTF-8. */
export async function writeText(destination: Destination, path: string, text: string): Promise<void> {
  const sink = await destination.create(path);
  await sink.write(new TextEncoder().encode(text));
  await sink.close();
}
