import { useState } from 'react';
import { namedFiles } from '../../formats/gguf-type';
import { formatBytes, formatCounted } from '../../formats/quantity';
import { entriesOf, fileIn, folderIn, rooted, writableOf } from '../../platform';
import { saveFiles, saveText } from '../local/file-download';
import { hasDirectoryPicker, pickOutputFolder } from '../local/local-files';
import { Button } from '../parts/Button';
import { FileList } from '../parts/FileList';
import { DownloadIcon, FolderIcon } from '../parts/icons';
import { Section } from '../parts/Section';
import { ZipButton } from '../parts/ZipButton';
import { freeName, outputName } from '../state/built-recipe';
import { isRecipeOf } from '../state/recipe-identity';
import { currentRun, type RunState } from '../state/runs';
import { notifyError } from '../state/studio';
import { useAnswer, useStudio, useStudioState } from '../studio-context';

const GONE = 'These files were deleted; merge again to have them.';
const NO_FILES: ReadonlyMap<string, File> = new Map();
const FETCHING = 'Being fetched from this browser’s storage.';

/** The files of the last finished run with size, hash and a download each; before that, the files a merge will write. */
export function OutputFiles() {
  const run = useStudioState(currentRun);
  const plan = useStudioState((s) => s.plan.report?.outputFiles);
  const name = useStudioState((s) => s.output.name ?? outputName(s.recipe));
  const planned = plan && namedFiles(plan, name);
  const isMerged = useStudioState((s) => run !== null && isRecipeOf(run.recipe, s.recipe, s.models));
  const done = run?.status === 'done' ? <Finished key={run.id} run={run} isRecipe={isMerged} /> : null;
  if (isMerged && done) return done;
  return (
    <>
      <Section title="Files to be written">
        {planned ? (
          <ul className="files panel">
            {planned.map((file) => (
              <li key={file}>
                <span className="mono truncate">{file}</span>
              </li>
            ))}
          </ul>
        ) : (
          <p className="quiet">Known once the plan is ready.</p>
        )}
      </Section>
      {done}
    </>
  );
}

/** @param isRecipe it is the merge of the current recipe */
function Finished({ run, isRecipe }: { run: RunState; isRecipe: boolean }) {
  const studio = useStudio();
  const { destination, report } = run;
  const kept = useDownloads(run);
  const files = kept === 'gone' ? NO_FILES : kept;
  const waiting = kept === 'gone' ? GONE : FETCHING;
  const shards = new Map((report?.shards ?? []).map((s) => [s.file, s]));
  const names = [...new Set([...shards.keys(), ...run.outputFiles])];
  const inFolder = destination.kind === 'folder';
  const downloads = names.flatMap((name) => {
    const file = files.get(name);
    return file ? [{ name, file }] : [];
  });
  const why = downloads.length < names.length ? waiting : null;
  const [saved, setSaved] = useState('');
  const [writing, setWriting] = useState(false);
  const toFolder = async () => {
    try {
      const within = await pickOutputFolder();
      if (!within) return;
      setWriting(true);
      const folder = await saveFolder(within, destination.name, downloads);
      setSaved(`Saved to ${within.name}/${folder}.`);
    } catch (thrown) {
      notifyError(studio, thrown);
    } finally {
      setWriting(false);
    }
  };
  return (
    <Section
      title={isRecipe ? 'Files' : 'Files of the last merge'}
      aside={<span className="small quiet">{formatCounted(names.length, 'file')}</span>}
    >
      <p className="file-where">
        <span>
          {run.title} · {run.methodTitle}
        </span>
        <br />
        {inFolder
          ? 'Saved to '
          : kept === 'gone'
            ? 'No longer kept in this browser: '
            : 'Kept in this browser as '}
        <strong>{inFolder ? `${destination.folder}/${destination.name}` : destination.name}</strong>
      </p>
      {isRecipe ? null : <p className="small quiet">The recipe has been changed since.</p>}
      <FileList
        files={names.map((name) => {
          const shard = shards.get(name);
          const file = files.get(name);
          return { name, bytes: shard?.bytes ?? file?.size, hash: shard?.hash, file };
        })}
        waiting={inFolder ? null : waiting}
      />
      <div className="row wrap">
        {inFolder ? null : (
          <>
            <ZipButton
              name={destination.name}
              files={async () => downloads}
              why={why}
              onSaved={(file, bytes) =>
                setSaved(`${file}, ${formatBytes(bytes)}, is with your browser’s downloads.`)
              }
            />
            <Button
              why={why}
              onClick={() => {
                saveFiles(downloads);
                setSaved(`${formatCounted(downloads.length, 'file')} are with your browser’s downloads.`);
              }}
            >
              <DownloadIcon />
              Files one by one
            </Button>
            {hasDirectoryPicker() ? (
              <Button why={why ?? (writing ? 'Being written.' : null)} onClick={() => void toFolder()}>
                <FolderIcon />
                {writing ? 'Writing…' : 'Save into a folder…'}
              </Button>
            ) : null}
          </>
        )}
        <Button onClick={() => saveText(JSON.stringify(report, null, 2), `${destination.name}.report.json`)}>
          <DownloadIcon />
          Report as JSON
        </Button>
      </div>
      <p className="small" role="status">
        {saved}
      </p>
      <p className="small quiet">
        The report holds every tensor's numbers, the hashes of inputs and outputs, and the timings.
      </p>
    </Section>
  );
}

/** The finished files of a `downloads` run, disk-backed, by name. An older run's may be gone. */
function useDownloads({ id, destination, outputFiles, again }: RunState): ReadonlyMap<string, File> | 'gone' {
  const { kind, name } = destination;
  const [files] = useAnswer<ReadonlyMap<string, File> | 'gone'>(
    NO_FILES,
    async (worker) => {
      if (kind !== 'downloads') return NO_FILES;
      if (again && !(await worker.cache()).outputs.some((o) => o.name === name)) return 'gone';
      const found = outputFiles.map(async (file) => [file, await worker.outputFile(name, file)] as const);
      return new Map(await Promise.all(found));
    },
    [id],
  );
  return files;
}

// Files written into a new folder on the user's disk.

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
