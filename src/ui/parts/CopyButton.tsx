import { useEffect, useState } from 'react';
import { Button } from './Button';
import { CheckIcon, CopyIcon } from './icons';

/** Copies a text and confirms it for a moment, without changing its width. */
export function CopyButton({ text, label = 'Copy' }: { text: () => string; label?: string }) {
  const [state, setState] = useState<'idle' | 'copied' | 'refused'>('idle');
  useEffect(() => {
    if (state === 'idle') return;
    const timer = setTimeout(() => setState('idle'), 1600);
    return () => clearTimeout(timer);
  }, [state]);
  const copy = () =>
    navigator.clipboard.writeText(text()).then(
      () => setState('copied'),
      () => setState('refused'),
    );
  return (
    <Button variant="plain" onClick={() => void copy()}>
      {state === 'copied' ? <CheckIcon /> : <CopyIcon />}
      <span className="swap-label">
        <span aria-hidden={state !== 'idle'} data-shown={state === 'idle'}>
          {label}
        </span>
        <span aria-hidden={state === 'idle'} data-shown={state !== 'idle'} role="status">
          {state === 'refused' ? 'Refused' : state === 'copied' ? 'Copied' : ''}
        </span>
      </span>
    </Button>
  );
}
