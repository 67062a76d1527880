import type { ReactNode } from 'react';
import { Button } from './Button';
import { CloseIcon } from './icons';

interface ChipProps {
  /** What it is called, also where its words are shorter or more. */
  name: string;
  on: boolean;
  title?: string;
  /** Pressed, it is chosen or no longer. */
  onToggle?(): void;
  /** Takes it away. */
  onRemove?: (() => void) | undefined;
  /** Why it cannot be taken away now. */
  why?: string | null;
  children?: ReactNode;
}

/** One of several that are chosen. */
export function Chip({ name, on, title, onToggle, onRemove, why = null, children = name }: ChipProps) {
  return (
    <span className="chip" data-on={on || undefined}>
      {onToggle ? (
        <button type="button" aria-pressed={on} title={title} onClick={onToggle}>
          {children}
        </button>
      ) : (
        <span className="chip-name">{children}</span>
      )}
      {onRemove ? (
        <Button icon={CloseIcon} variant="quiet" why={why} aria-label={`Remove ${name}`} onClick={onRemove} />
      ) : null}
    </span>
  );
}
