import { useState } from 'react';
import { notifyError } from '../state/studio';
import { useStudio } from '../studio-context';

/** The plain sha256 of a file, made and copied when somebody asks for it: a merge says what a file is by its tree hash. */
export function Sha256Link({ file }: { file: File }) {
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
      <code className="faint truncate" title={`sha256 ${state.sha256}`} role="status">
        sha256 {state.sha256.slice(0, 12)}…{state.isCopied ? ' copied' : ''}
      </code>
    );
  }
  const text = state === 'reading' ? 'reading the file…' : 'copy sha256';
  return (
    <span>
      <button
        type="button"
        className="link"
        aria-label={`${text} of ${file.name}`}
        onClick={() => void make()}
      >
        {text}
      </button>
    </span>
  );
}
