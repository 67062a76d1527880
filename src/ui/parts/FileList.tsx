import { formatBytes } from '../format/quantity';
import { saveFile } from '../local/save-file';
import { Button } from './Button';
import { DownloadIcon } from './icons';

export interface ListedFile {
  name: string;
  bytes: number | undefined;
  sha256: string | undefined;
  /** The file itself, once it is at hand. */
  file: File | undefined;
}

/**
 * Files that were written: name, hash and size, and a download each.
 * @param waiting why a file that is not at hand cannot be downloaded; null for files in a folder of the person's own
 */
export function FileList({ files, waiting }: { files: readonly ListedFile[]; waiting: string | null }) {
  return (
    <ul className="files">
      {files.map(({ name, bytes, sha256, file }) => (
        <li key={name}>
          <span className="file-name">
            <span className="mono truncate">{name}</span>
            {sha256 ? (
              <code className="faint truncate" title={`sha256 ${sha256}`}>
                sha256 {sha256.slice(0, 12)}…
              </code>
            ) : null}
          </span>
          <span className="numeric">{bytes === undefined ? '' : formatBytes(bytes)}</span>
          {waiting === null ? null : (
            <Button
              aria-label={`Download ${name}`}
              why={file ? null : waiting}
              onClick={() => file && saveFile(file, name)}
            >
              <DownloadIcon />
              Download
            </Button>
          )}
        </li>
      ))}
    </ul>
  );
}
