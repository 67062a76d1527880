import { useState } from 'react';
import { notifyError } from '../state/studio';
import { useStudio } from '../studio-context';
import { Button } from './Button';
import { CopyButton } from './CopyButton';

/** The plain sha256 of a file, made when somebody asks for it: a merge says what a file is by its tree hash. */
export function Sha256Button({ file }: { file: File }) {
  const studio = useStudio();
  const [sha256, setSha256] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  if (sha256) {
    return (
      <>
        <code className="faint truncate" title={`sha256 ${sha256}`}>
          sha256 {sha256.slice(0, 12)}…
        </code>
        <CopyButton text={() => sha256} label="Copy" />
      </>
    );
  }
  const make = async () => {
    setBusy(true);
    try {
      setSha256(await studio.engine.sha256(file));
    } catch (thrown) {
      notifyError(studio, thrown);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Button
      variant="plain"
      aria-label={`sha256 of ${file.name}`}
      why={isBusy ? 'The file is being read.' : null}
      onClick={() => void make()}
    >
      {isBusy ? 'Reading…' : 'sha256'}
    </Button>
  );
}
