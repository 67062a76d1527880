import { hasDirectoryPicker } from '../local/local-files';
import { chooseFolder } from '../state/run';
import { editSlice, notifyError } from '../state/studio';
import { useStudio, useStudioState } from '../studio-context';
import { Button } from './Button';
import { FolderIcon } from './icons';
import { Segmented } from './Segmented';

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
