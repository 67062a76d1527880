import { HASHES_FILE, hashesText } from '../formats/output-hashes';
import type { Destination } from './destination';
import { writeWhole } from './whole-file';

/**
 * Commits an output after a file that says what went in and what came out, by their hashes.
 * @param inputs hashes of the files that were read, by the name that the recipe has for them
 * @throws what the destination throws
 */
export async function commitOutput(
  destination: Destination,
  inputs: Readonly<Record<string, string>>,
): Promise<void> {
  const outputs = await destination.written?.();
  if (outputs) await writeWhole(destination, HASHES_FILE, hashesText(inputs, Object.fromEntries(outputs)));
  await destination.commit();
}
