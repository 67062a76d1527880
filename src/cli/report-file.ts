import { randomBytes } from 'node:crypto';
import { rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { AmalgamError } from '../errors';
import { destinationError } from '../write/destination-error';

/**
 * A job may take an hour; a file that could not be written afterwards is found out before, by trying.
 * @param option that names it
 * @throws Usage for a name that is taken or has no folder, DestinationFailed
 */
export async function checkReportPlace(file: string, option = 'report'): Promise<void> {
  const folder = await stat(dirname(file)).catch(() => undefined);
  const existing = await stat(file).catch(() => undefined);
  if (!folder?.isDirectory() || existing) {
    throw new AmalgamError(
      'Usage',
      existing ? `${file} already exists.` : `${file} cannot be written: it has no folder.`,
      `Give --${option} a new file name in a folder that exists; Amalgam never overwrites.`,
    );
  }
  await throughNeighbor(file, (temporary) => writeFile(temporary, ' '));
}

/** Writes a report to the file that was asked for, whose place is checked now; without one does nothing. */
export async function reportWriter(
  name: string | undefined,
  workingFolder: string,
): Promise<(report: object) => Promise<void>> {
  if (name === undefined) return async () => undefined;
  const file = resolve(workingFolder, name);
  await checkReportPlace(file);
  return (report) => writeWhole(file, `${JSON.stringify(report, null, 2)}\n`);
}

/** Writes a file beside its name and swaps, so that half a file never has the name. @throws DestinationFailed */
export async function writeWhole(file: string, text: string): Promise<void> {
  await throughNeighbor(file, async (temporary) => {
    await writeFile(temporary, text);
    await rename(temporary, file);
  });
}

/** Acts on a file of a name of its own beside `file`, which is gone afterwards. */
async function throughNeighbor(file: string, act: (temporary: string) => Promise<void>): Promise<void> {
  const temporary = `${file}.${randomBytes(4).toString('hex')}`;
  try {
    await act(temporary);
  } catch (thrown) {
    throw destinationError(thrown, file);
  } finally {
    // what could not be made is not there
    await rm(temporary, { force: true }).catch(() => {});
  }
}
