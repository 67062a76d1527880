import { useState } from 'react';
import { formatPercent } from '../../formats/quantity';
import { saveFile } from '../local/file-download';
import { notifyError } from '../state/studio';
import { useStudio } from '../studio-context';
import { Button } from './Button';
import { DownloadIcon } from './icons';

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
