import { useEffect, useState } from 'react';
import { hasDirectoryPicker } from '../local/local-files';
import type { SavedOutput } from '../state/job-state';
import { chooseFolder } from '../state/run';
import { editSlice, notifyError } from '../state/studio';
import { useStudio, useStudioState } from '../studio-context';
import { Button } from './Button';
import { FileList } from './FileList';
import { FolderIcon } from './icons';
import { Segmented } from './Segmented';
import { ZipButton } from './ZipButton';

const FETCHING = 'Being fetched from this browser’s storage.';

/** The files a tool has written: where they are, and a download each where they are in the browser's storage. */
export function SavedFiles({ saved }: { saved: SavedOutput }) {
  const files = useFiles(saved);
  const inFolder = saved.kind === 'folder';
  const ready = saved.files.flatMap(({ name }) => {
    const file = files.get(name);
    return file ? [{ name, file }] : [];
  });
  return (
    <>
      <p className="file-where">
        {inFolder ? 'Saved to ' : 'Kept in this browser as '}
        <strong>{inFolder ? `${saved.folder}/${saved.name}` : saved.name}</strong>
      </p>
      <FileList
        files={saved.files.map(({ name, bytes = files.get(name)?.size, hash }) => ({
          name,
          bytes,
          hash,
          file: files.get(name),
        }))}
        waiting={inFolder ? null : FETCHING}
      />
      {inFolder ? null : (
        <div className="row">
          <ZipButton
            name={saved.name}
            files={async () => ready}
            why={ready.length < saved.files.length ? FETCHING : null}
          />
        </div>
      )}
    </>
  );
}

/** The files that are in the browser's storage, disk-backed, by name; filled as they arrive. */
function useFiles({ kind, name, files }: SavedOutput): ReadonlyMap<string, File> {
  const studio = useStudio();
  const [found, setFound] = useState<ReadonlyMap<string, File>>(new Map());
  useEffect(() => {
    if (kind !== 'downloads') return;
    let gone = false;
    const fetchAll = async () => {
      const fetched = new Map<string, File>();
      for (const file of files) {
        fetched.set(file.name, await studio.worker.outputFile(name, file.name));
        if (gone) return;
      }
      setFound(fetched);
    };
    fetchAll().catch((thrown: unknown) => notifyError(studio, thrown));
    return () => {
      gone = true;
    };
  }, [kind, name, files, studio]);
  return found;
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
          variant="quiet"
          onClick={() => void chooseFolder(studio).catch((e: unknown) => notifyError(studio, e))}
        >
          <FolderIcon />
          {output.folder === null ? 'Choose folder…' : 'Choose another…'}
        </Button>
      ) : null}
    </div>
  );
}
