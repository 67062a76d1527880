import { type ReactNode, useState } from 'react';
import { formatBytes, formatCounted } from '../../formats/quantity';
import { entriesOf, fileIn, folderIn, rooted, writableOf } from '../../platform';
import { saveFiles } from '../local/file-download';
import { hasDirectoryPicker, pickOutputFolder } from '../local/local-files';
import { freeName } from '../state/built-recipe';
import type { SavedOutput } from '../state/job-state';
import { chooseFolder } from '../state/run';
import { editSlice, noticed, notifyError } from '../state/studio';
import { useAnswer, useStudio, useStudioState } from '../studio-context';
import { Button } from './Button';
import { FileList } from './FileList';
import { Segmented } from './fields';
import { DownloadIcon, FolderIcon } from './icons';
import { ZipButton } from './ZipButton';

const GONE = 'These files were deleted; merge again to have them.';
const FETCHING = 'Being fetched from this browser’s storage.';
const NO_FILES: ReadonlyMap<string, File> = new Map();

interface SavedFilesProps {
  saved: SavedOutput;
  /** They may have been deleted since. */
  old?: boolean;
  /** What they are of. */
  children?: ReactNode;
}

/** The files that were written: where they are, a download each, and ways to have them all. */
export function SavedFiles({ saved, old = false, children }: SavedFilesProps) {
  const { kind, name, folder, files: written } = saved;
  const inFolder = kind === 'folder';
  const [found] = useAnswer<ReadonlyMap<string, File> | 'gone'>(
    NO_FILES,
    async (worker) => {
      if (inFolder) return NO_FILES;
      if (old && !(await worker.cache()).outputs.some((o) => o.name === name)) return 'gone';
      const files = written.map(
        async (file) => [file.name, await worker.outputFile(name, file.name)] as const,
      );
      return new Map(await Promise.all(files));
    },
    [inFolder, name, old],
  );
  const files = found === 'gone' ? NO_FILES : found;
  const waiting = found === 'gone' ? GONE : FETCHING;
  const ready = written.flatMap((one) => {
    const file = files.get(one.name);
    return file ? [{ name: one.name, file }] : [];
  });
  return (
    <>
      <p className="file-where">
        {children}
        {inFolder
          ? 'Saved to '
          : found === 'gone'
            ? 'No longer kept in this browser: '
            : 'Kept in this browser as '}
        <strong>{inFolder ? `${folder}/${name}` : name}</strong>
      </p>
      <FileList
        files={written.map((one) => {
          const file = files.get(one.name);
          return { name: one.name, bytes: one.bytes ?? file?.size, hash: one.hash, file };
        })}
        waiting={inFolder ? null : waiting}
      />
      {inFolder ? null : (
        <SaveAll name={name} files={ready} why={ready.length < written.length ? waiting : null} />
      )}
    </>
  );
}

interface SaveAllProps {
  name: string;
  files: readonly { name: string; file: File }[];
  why: string | null;
}

/** All files as one, one by one, or into a folder of the user's own. */
function SaveAll({ name, files, why }: SaveAllProps) {
  const studio = useStudio();
  const [saved, setSaved] = useState('');
  const [writing, setWriting] = useState(false);
  const toFolder = async () => {
    try {
      const within = await pickOutputFolder();
      if (!within) return;
      setWriting(true);
      setSaved(`Saved to ${within.name}/${await saveFolder(within, name, files)}.`);
    } catch (thrown) {
      notifyError(studio, thrown);
    } finally {
      setWriting(false);
    }
  };
  return (
    <>
      <div className="row wrap">
        <ZipButton
          name={name}
          files={async () => files}
          why={why}
          onSaved={(file, bytes) =>
            setSaved(`${file}, ${formatBytes(bytes)}, is with your browser’s downloads.`)
          }
        />
        <Button
          icon={DownloadIcon}
          why={why}
          onClick={() => {
            saveFiles(files);
            setSaved(`${formatCounted(files.length, 'file')} are with your browser’s downloads.`);
          }}
        >
          Files one by one
        </Button>
        {hasDirectoryPicker() ? (
          <Button
            icon={FolderIcon}
            why={why ?? (writing ? 'Being written.' : null)}
            onClick={() => void toFolder()}
          >
            {writing ? 'Writing…' : 'Save into a folder…'}
          </Button>
        ) : null}
      </div>
      <p className="small" role="status">
        {saved}
      </p>
    </>
  );
}

/**
 * Writes files into a new folder `name`, or `name-2`, … where there is one.
 * @param within the picked folder, writable
 * @returns the name of the new folder
 * @throws the browser's own errors: no access, no room
 */
async function saveFolder(
  within: FileSystemDirectoryHandle,
  name: string,
  files: readonly { name: string; file: Blob }[],
): Promise<string> {
  const taken = (await entriesOf(within)).map(([entry]) => entry);
  const free = freeName(name, taken);
  const folder = await folderIn(within, free, true);
  for (const { name: path, file } of files) {
    const stream = await writableOf(await fileIn(folder, path, true));
    // closes the file when all is written, and gives it up when something fails
    await rooted(stream, file.stream().pipeTo(stream));
  }
  return free;
}

/** Where a tool's files go: the same choice as for a merge, in one line. */
export function SaveTo({ what }: { what: string }) {
  const studio = useStudio();
  const output = useStudioState((s) => s.output);
  const storage = useStudioState((s) => s.engine.info?.storage);
  const noDownloads =
    storage && !storage.available ? (storage.why ?? 'This browser offers no storage.') : null;
  const noFolder = hasDirectoryPicker()
    ? null
    : 'This browser cannot write into folders; Chrome and Edge on a computer can.';
  return (
    <div className="row wrap">
      <span className="small quiet">{what}</span>
      <Segmented
        label={`${what}: where to`}
        value={output.kind}
        options={[
          { value: 'downloads', label: 'Downloads', why: noDownloads },
          { value: 'folder', label: output.folder === null ? 'A folder' : output.folder, why: noFolder },
        ]}
        onChange={(kind) => editSlice(studio, 'output', { kind })}
      />
      {output.kind === 'folder' && noFolder === null ? (
        <Button
          icon={FolderIcon}
          variant="quiet"
          onClick={() => void noticed(studio, () => chooseFolder(studio))}
        >
          {output.folder === null ? 'Choose folder…' : 'Choose another…'}
        </Button>
      ) : null}
    </div>
  );
}
