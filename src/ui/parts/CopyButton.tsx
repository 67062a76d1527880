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
      <span className="grid swap-label">
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

/** A text as it is written; it scrolls. */
export function TextBlock({
  label,
  text,
  className = '',
}: {
  label: string;
  text: string;
  className?: string;
}) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region is reached by keyboard too.
    <section className={`yaml scroll panel ${className}`.trimEnd()} tabIndex={0} aria-label={label}>
      <pre>{text}</pre>
    </section>
  );
}
