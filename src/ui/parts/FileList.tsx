import { useState } from 'react';
import { isTreeHash, TREE_PREFIX } from '../../formats/hashes';
import { formatBytes } from '../../formats/quantity';
import { saveFile } from '../local/file-download';
import { notifyError } from '../state/studio';
import { useStudio } from '../studio-context';
import { Button, LinkButton } from './Button';
import { DownloadIcon } from './icons';

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
        <li key={name}>
          <span className="grid grow">
            <span className="mono small truncate">{name}</span>
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
    ? { kind: 'tree hash', digits: hash.slice(TREE_PREFIX.length) }
    : { kind: 'sha256', digits: hash };
}

/** The plain sha256 of a file, made and copied when somebody asks for it: a merge says what a file is by its tree hash. */
function Sha256Link({ file }: { file: File }) {
  const studio = useStudio();
  const [state, setState] = useState<'idle' | 'reading' | { sha256: string; isCopied: boolean }>('idle');
  const make = async () => {
    if (state === 'reading') return;
    setState('reading');
    try {
      const sha256 = await studio.worker.sha256(file);
      const isCopied = await navigator.clipboard.writeText(sha256).then(
        () => true,
        () => false,
      );
      setState({ sha256, isCopied });
    } catch (thrown) {
      setState('idle');
      notifyError(studio, thrown);
    }
  };
  if (typeof state === 'object') {
    return (
      <code className="small faint truncate" title={`sha256 ${state.sha256}`} role="status">
        sha256 {state.sha256.slice(0, 12)}…{state.isCopied ? ' copied' : ''}
      </code>
    );
  }
  const text = state === 'reading' ? 'reading the file…' : 'copy sha256';
  return (
    <span>
      <LinkButton aria-label={`${text} of ${file.name}`} onClick={() => void make()}>
        {text}
      </LinkButton>
    </span>
  );
}
