import { type ReactNode, useState } from 'react';
import { isTreeHash } from '../../formats/hashes';
import { formatBytes, formatPercent } from '../../formats/quantity';
import { hasDirectoryPicker, saveFile } from '../local/local-files';
import type { SavedOutput } from '../state/job-state';
import { openOutput } from '../state/models';
import { chooseFolder } from '../state/run';
import { editSlice, noticed, notify, notifyError, setView } from '../state/studio';
import { useAnswer, useStudio, useStudioState } from '../studio-context';
import { Button, DownloadIcon, FolderIcon, LinkButton } from './Button';
import { Segmented } from './fields';
import { useAttempt } from './hooks';
import { Problem } from './Message';
import { BrokenName } from './Section';

interface ListedFile {
  name: string;
  bytes: number | undefined;
  hash: string | undefined;
  /** The file itself, once it is at hand. */
  file: File | undefined;
}

/**
 * Files that were written: name, hash and size, and a download each.
 * @param waiting why a file that is not at hand cannot be downloaded; null for files in a folder of the user's own
 */
export function FileList({ files, waiting }: { files: readonly ListedFile[]; waiting: string | null }) {
  return (
    <ul className="files ruled panel">
      {files.map(({ name, bytes, hash, file }) => (
        <li key={name} className="row spread loose small">
          <span className="grid grow">
            <span className="mono small">
              <BrokenName name={name} />
            </span>
            {hash ? <HashDigits hash={hash} length={12} /> : null}
            {hash && file ? <Sha256Link file={file} /> : null}
          </span>
          <span className="numeric">{bytes === undefined ? '' : formatBytes(bytes)}</span>
          {waiting === null ? null : (
            <Button
              icon={DownloadIcon}
              aria-label={`Download ${name}`}
              why={file ? null : waiting}
              onClick={() => file && saveFile(file, name)}
            >
              Download
            </Button>
          )}
        </li>
      ))}
    </ul>
  );
}

/** A hash by its first digits; the whole of it where a pointer rests. */
export function HashDigits({ hash, length }: { hash: string; length: number }) {
  const { kind, digits } = hashWords(hash);
  return (
    <code className="small faint truncate" title={`${kind} ${digits}`}>
      {kind} {digits.slice(0, length)}…
    </code>
  );
}

/** A hash by its kind and hex digits: that of a whole file, or that of its pieces (docs/formats.md). */
function hashWords(hash: string): { kind: 'sha256' | 'tree hash'; digits: string } {
  return isTreeHash(hash)
    ? { kind: 'tree hash', digits: hash.slice(hash.indexOf(':') + 1) }
    : { kind: 'sha256', digits: hash };
}

/** The plain sha256 of a file, made and copied when somebody asks for it: a merge says what a file is by its tree hash. */
function Sha256Link({ file }: { file: File }) {
  const studio = useStudio();
  const [found, setFound] = useState<{ sha256: string; isCopied: boolean }>();
  const { working, error, attempt } = useAttempt();
  const make = () =>
    attempt('read', async () => {
      const sha256 = await studio.worker.sha256(file);
      const isCopied = await navigator.clipboard.writeText(sha256).then(
        () => true,
        () => false,
      );
      setFound({ sha256, isCopied });
    });
  if (error) return <Problem>{error.message}</Problem>;
  if (found) {
    return (
      <code className="small faint truncate" title={`sha256 ${found.sha256}`} role="status">
        sha256 {found.sha256.slice(0, 12)}…{found.isCopied ? ' copied' : ''}
      </code>
    );
  }
  const text = working ? 'reading the file…' : 'copy sha256';
  return (
    <span>
      <LinkButton aria-label={`${text} of ${file.name}`} onClick={() => void make()}>
        {text}
      </LinkButton>
    </span>
  );
}

interface ZipButtonProps {
  /** Of the folder inside, and of the .zip. */
  name: string;
  files(): Promise<readonly { name: string; file: File }[]>;
  why: string | null;
  /** Without words, for a row of a list. */
  small?: boolean;
  label?: string;
  /** Told of the .zip and its bytes once the browser has it. */
  onSaved?(file: string, bytes: number): void;
}

/** All files as one .zip: browsers ask before the second of several downloads. */
export function ZipButton(props: ZipButtonProps) {
  const { name, files, why, small = false, label = 'Download as .zip', onSaved } = props;
  const studio = useStudio();
  const [share, setShare] = useState<number | null>(null);
  const save = async () => {
    setShare(0);
    try {
      const [{ zipOf }, found] = await Promise.all([import('../../formats/zip'), files()]);
      const all = found.reduce((sum, { file }) => sum + file.size, 0);
      const inFolder = found.map(({ name: path, file }) => ({ name: `${name}/${path}`, file }));
      const zip = await zipOf(inFolder, (bytes) => setShare(bytes / Math.max(1, all)));
      saveFile(zip, `${name}.zip`);
      onSaved?.(`${name}.zip`, zip.size);
    } catch (thrown) {
      notifyError(studio, thrown);
    } finally {
      setShare(null);
    }
  };
  const reading = share === null ? null : `Reading the files, ${formatPercent(share)}`;
  return (
    <Button
      icon={DownloadIcon}
      why={why ?? reading}
      onClick={() => void save()}
      {...(small
        ? { iconOnly: true, tip: 'Download as .zip', 'aria-label': `Download ${name} as .zip` }
        : { variant: 'primary' as const })}
    >
      {small ? null : share === null ? label : `Reading, ${formatPercent(share)}`}
    </Button>
  );
}

const GONE = 'These files were deleted; merge again to have them.';
const FETCHING = 'Being fetched from this browser’s storage.';
const NO_FILES: ReadonlyMap<string, File> = new Map();

interface SavedFilesProps {
  saved: SavedOutput;
  /** They may have been deleted since. */
  old?: boolean;
  /** They can be opened, and pushed: all but those of a report. */
  isModel?: boolean;
  /** What they are of. */
  children?: ReactNode;
}

/** The files that were written: where they are, a download each, and ways to have them all. */
export function SavedFiles({ saved, old = false, isModel = true, children }: SavedFilesProps) {
  const { kind, name, folder, files: written } = saved;
  const inFolder = kind === 'folder';
  const [downloaded, setDownloaded] = useState('');
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
      <div className="row wrap">
        {inFolder ? null : (
          <ZipButton
            name={name}
            files={async () => ready}
            why={ready.length < written.length ? waiting : null}
            onSaved={(file, bytes) =>
              setDownloaded(`${file}, ${formatBytes(bytes)}, is with your browser’s downloads.`)
            }
          />
        )}
        {isModel && found !== 'gone' ? <ModelActions saved={saved} /> : null}
        <p className="small" role="status">
          {downloaded}
        </p>
      </div>
    </>
  );
}

/** What can be done with a written model besides downloading it. */
function ModelActions({ saved }: { saved: SavedOutput }) {
  const studio = useStudio();
  const { working, attempt } = useAttempt();
  const { kind, name, files } = saved;
  const known = useStudioState((s) => s.models.some((m) => m.ref === name));
  const open = () =>
    attempt('open', async () => {
      const ref = await openOutput(
        studio,
        saved,
        files.map((file) => file.name),
      );
      if (ref !== null)
        notify(studio, 'note', `Opened ${ref}.`, 'Choose it in a recipe, or measure how it differs.');
    });
  const push = () => {
    editSlice(studio, 'push', { output: name });
    setView(studio, { tab: 'files', filesAt: 'push' });
  };
  return (
    <>
      <Button why={known ? 'It is already open.' : working ? 'Opening…' : null} onClick={() => void open()}>
        Open it as a model
      </Button>
      {kind === 'downloads' ? <Button onClick={push}>Push to the Hub…</Button> : null}
    </>
  );
}

/** Where files go and under which name: one choice for all that writes. @param children where the name can be changed */
export function SaveTo({ name, children }: { name: string | null; children?: ReactNode }) {
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
      <span className="small quiet">Save to</span>
      <Segmented
        label="Save to"
        value={output.kind}
        options={[
          { value: 'downloads', label: 'This browser', why: noDownloads },
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
      {name === null ? null : (
        <span className="row tight save-as">
          <span className="small quiet">as</span>
          {children ?? <code className="truncate">{name}</code>}
        </span>
      )}
    </div>
  );
}
