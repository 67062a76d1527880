/** Opening an output as a model. */
import { folderIn } from '../../platform';
import { walkHandle } from '../local/local-files';
import { openLocal } from './models';
import type { SavedOutput } from './saved-state';
import { notifyError, type Studio } from './studio';

/** Opens an output as a model; returns its reference, or null after a failure, which is shown. */
export async function openOutput(
  studio: Studio,
  { kind, name }: Pick<SavedOutput, 'kind' | 'name'>,
  outputFiles: readonly string[],
): Promise<string | null> {
  try {
    const files =
      kind === 'folder'
        ? await filesInFolder(studio, name)
        : await Promise.all(
            outputFiles.map(async (file) => ({
              path: `${name}/${file}`,
              file: await studio.worker.outputFile(name, file),
            })),
          );
    const [opened] = await openLocal(studio, files);
    return opened?.ref ?? null;
  } catch (thrown) {
    notifyError(studio, thrown);
    return null;
  }
}

async function filesInFolder(studio: Studio, name: string) {
  const { folder } = studio.transient;
  return folder ? walkHandle(await folderIn(folder, name)) : [];
}
