/** The files of a finished output, disk-backed, wherever it was written. */

import { AmalgamError } from '../errors';
import { contentOf, fileIn, folderIn } from '../platform';
import type { PushSource } from '../reports/push';
import { destinationError, outputPathParts } from './destination-error';
import { findOutput, openOutputFile, readOutput } from './finished-outputs';

export interface FinishedFile {
  path: string;
  content: File;
}

/**
 * @returns the files in the order they were written
 * @throws NotFound when the output is not there or not finished; DestinationFailed when the folder cannot be read
 */
export async function finishedFiles(source: PushSource): Promise<FinishedFile[]> {
  const files: FinishedFile[] = [];
  if (source.kind === 'downloads') {
    const folder = await findOutput(source.name);
    const output = folder && (await readOutput(folder));
    if (!output?.complete) throw notFinished(source.name);
    for (const { path } of output.files) {
      files.push({ path, content: await openOutputFile(source.name, path) });
    }
    return files;
  }
  for (const path of source.files) {
    const parts = outputPathParts(path);
    const name = parts.pop()!;
    try {
      let inside = await folderIn(source.handle, source.name);
      for (const part of parts) inside = await folderIn(inside, part);
      files.push({ path, content: await contentOf(await fileIn(inside, name)) });
    } catch (thrown) {
      throw destinationError(thrown, `${source.name}/${path}`);
    }
  }
  return files;
}

function notFinished(name: string): AmalgamError {
  return new AmalgamError(
    'NotFound',
    `There is no finished output ${name}.`,
    'It may have been deleted, or the merge did not finish. Merge again.',
  );
}
