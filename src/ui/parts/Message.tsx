import type { ReactNode } from 'react';
import { CheckIcon, ErrorIcon, InfoIcon, WarningIcon } from './icons';

interface MessageProps {
  tone: 'error' | 'warning' | 'note' | 'ok';
  title: ReactNode;
  /** Next step for the user. */
  hint?: ReactNode;
  children?: ReactNode;
  /** Buttons, in a row below. */
  actions?: ReactNode;
  live?: boolean;
}

const icons = { error: ErrorIcon, warning: WarningIcon, note: InfoIcon, ok: CheckIcon };

/** A message and its next step. */
export function Message({ tone, title, hint, children, actions, live }: MessageProps) {
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
      {actions ? <div className="row wrap message-actions">{actions}</div> : null}
    </div>
  );
}

interface ProblemProps {
  className?: string;
  children: string | null | undefined | false;
}

/** Words for what is wrong with the fields above; nothing where nothing is. */
export function Problem({ className = '', children }: ProblemProps) {
  return children ? (
    <p className={`small tone-bad ${className}`} role="alert">
      {children}
    </p>
  ) : null;
}
