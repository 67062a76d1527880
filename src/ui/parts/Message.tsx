import type { ReactNode } from 'react';
import { CheckIcon, ErrorIcon, InfoIcon, WarningIcon } from './icons';

interface MessageProps {
  tone: 'error' | 'warning' | 'note' | 'ok';
  title: ReactNode;
  /** What to do about it. */
  hint?: ReactNode;
  children?: ReactNode;
  live?: boolean;
}

const icons = { error: ErrorIcon, warning: WarningIcon, note: InfoIcon, ok: CheckIcon };

/** Something to know: what it is, and what to do about it. */
export function Message({ tone, title, hint, children, live }: MessageProps) {
  const Icon = icons[tone];
  return (
    <div
      className="message panel"
      data-tone={tone}
      role={live ? (tone === 'error' ? 'alert' : 'status') : undefined}
    >
      <Icon />
      <div className="message-title">{title}</div>
      {hint ? <div className="quiet">{hint}</div> : null}
      {children}
    </div>
  );
}
