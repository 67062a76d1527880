import { Tooltip } from 'radix-ui';
import { type ComponentProps, type ReactNode, useEffect, useId, useRef, useState } from 'react';
import { hasDirectoryPicker, inputFiles, type PickedFiles, pickModelFolder } from '../local/local-files';
import { type Action, perform } from '../state/actions';
import { useStudio, useStudioState } from '../studio-context';

// Line icons on a 16 px grid, drawn in the current color. All are decoration: the words beside them carry the meaning.

/** An icon of one line; what is filled stands in `more`. */
const icon = (line: string, more?: ReactNode) => () => (
  <svg
    width="16"
    height="16"
    viewBox="0 0 16 16"
    fill="none"
    stroke="currentColor"
    strokeWidth="1.5"
    strokeLinecap="round"
    strokeLinejoin="round"
    aria-hidden="true"
    focusable="false"
  >
    <path d={line} />
    {more}
  </svg>
);

export const PlusIcon = icon('M8 3.5v9M3.5 8h9');
export const UndoIcon = icon('M3 6.5h6.5a3.5 3.5 0 0 1 0 7H6M3 6.5 5.8 3.7M3 6.5l2.8 2.8');
export const RedoIcon = icon('M13 6.5H6.5a3.5 3.5 0 0 0 0 7H10M13 6.5l-2.8-2.8M13 6.5l-2.8 2.8');
export const SwapIcon = icon('M3 5.5h9.5M10 3l2.5 2.5L10 8M13 10.5H3.5M6 8l-2.5 2.5L6 13');
export const ChevronIcon = icon('m5 6.5 3 3 3-3');
export const MoreIcon = icon('M3.5 8h.01M8 8h.01M12.5 8h.01');
export const CloseIcon = icon('m4 4 8 8M12 4l-8 8');
export const CheckIcon = icon('m3 8.5 3.2 3L13 4.5');
export const WarningIcon = icon('M8 2.2 14.5 13.5h-13zM8 6.5v3M8 11.6v.1');
export const ErrorIcon = icon('M14 8a6 6 0 1 1-12 0 6 6 0 1 1 12 0M8 4.8v3.8M8 11.1v.1');
export const InfoIcon = icon('M14 8a6 6 0 1 1-12 0 6 6 0 1 1 12 0M8 7.4v3.8M8 4.9v.1');
export const SearchIcon = icon('M11.2 7a4.2 4.2 0 1 1-8.4 0 4.2 4.2 0 1 1 8.4 0M10.2 10.2l3.3 3.3');
export const FolderIcon = icon('M1.8 12.5v-9h4l1.6 1.8h6.8v7.2z');
export const DownloadIcon = icon('M8 2.5v7.5M4.8 7 8 10.2 11.2 7M2.5 13.2h11');
export const CopyIcon = icon(
  'M7 5.5h5a1.5 1.5 0 0 1 1.5 1.5v5a1.5 1.5 0 0 1-1.5 1.5h-5a1.5 1.5 0 0 1-1.5-1.5v-5a1.5 1.5 0 0 1 1.5-1.5M10.5 5.5v-3h-8v8h3',
);
export const TrashIcon = icon('M2.5 4h11M6 4V2.5h4V4M4 4l.7 9.5h6.6L12 4');
export const LockIcon = icon(
  'M4.5 7h7a1.5 1.5 0 0 1 1.5 1.5v3.5a1.5 1.5 0 0 1-1.5 1.5h-7a1.5 1.5 0 0 1-1.5-1.5v-3.5a1.5 1.5 0 0 1 1.5-1.5M5.2 7V5a2.8 2.8 0 0 1 5.6 0v2',
);
export const CurveIcon = icon(
  'M2 12.5c3.5 0 3.5-8 6-8s2.5 5 6 5',
  <circle cx="8" cy="4.5" r="1.6" fill="var(--panel)" />,
);
export const GripIcon = icon(
  '',
  <path d="M6 4v.1M10 4v.1M6 8v.1M10 8v.1M6 12v.1M10 12v.1" strokeWidth="2" />,
);
export const DiskIcon = icon(
  'M13.2 4.2a5.2 2 0 1 1-10.4 0 5.2 2 0 1 1 10.4 0M2.8 4.2v7.6c0 1.1 2.3 2 5.2 2s5.2-.9 5.2-2V4.2M2.8 8c0 1.1 2.3 2 5.2 2s5.2-.9 5.2-2',
);
export const SunIcon = icon(
  'M10.8 8a2.8 2.8 0 1 1-5.6 0 2.8 2.8 0 1 1 5.6 0M8 1.5v1.3M8 13.2v1.3M1.5 8h1.3M13.2 8h1.3M3.4 3.4l.9.9M11.7 11.7l.9.9M3.4 12.6l.9-.9M11.7 4.3l.9-.9',
);
export const MoonIcon = icon('M13.3 9.6A5.8 5.8 0 0 1 6.4 2.7a5.8 5.8 0 1 0 6.9 6.9z');
export const SystemThemeIcon = icon(
  'M13.8 8a5.8 5.8 0 1 1-11.6 0 5.8 5.8 0 1 1 11.6 0',
  <path d="M8 2.2v11.6a5.8 5.8 0 0 0 0-11.6z" fill="currentColor" stroke="none" />,
);

/** The mark: three models melting into one. */
export function Mark() {
  return (
    <svg width="20" height="20" viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <circle cx="12" cy="12.5" r="8.5" fill="var(--model-0)" />
      <circle cx="20" cy="12.5" r="8.5" fill="var(--model-1)" fillOpacity="0.85" />
      <circle cx="16" cy="20" r="8.5" fill="var(--model-2)" fillOpacity="0.85" />
    </svg>
  );
}

interface ButtonProps extends Omit<ComponentProps<'button'>, 'disabled'> {
  variant?: 'plain' | 'primary' | 'quiet';
  /** Why the button cannot be pressed now; it stays focusable and shows this. */
  why?: string | null | undefined;
  /** Tooltip while it can be pressed. */
  tip?: string | undefined;
  /** Before the words; where there are none it stands alone, and the button is as wide as high. */
  icon?: (() => ReactNode) | undefined;
  iconOnly?: boolean;
}

/** A button. Disabled means: it shows why, stays in the tab order, and does nothing. */
export function Button(props: ButtonProps) {
  const { variant = 'plain', why, tip, icon: Icon, children, onClick, className, ...more } = props;
  const { iconOnly = Icon !== undefined && !children, ...rest } = more;
  const whyId = useId();
  const button = (
    <button
      type="button"
      className={`button${iconOnly ? ' icon-only' : ''}${className ? ` ${className}` : ''}`}
      data-variant={variant}
      {...(why ? { 'aria-disabled': true, 'aria-describedby': whyId } : {})}
      onClick={why ? (event) => event.preventDefault() : onClick}
      {...rest}
    >
      {Icon ? <Icon /> : null}
      {children}
    </button>
  );
  const text = why ?? tip;
  return (
    <>
      {text ? <Tip text={text}>{button}</Tip> : button}
      {why ? (
        <span id={whyId} className="visually-hidden">
          {why}
        </span>
      ) : null}
    </>
  );
}

/** A button that looks like a link in a text. */
export function LinkButton({ className, ...rest }: ComponentProps<'button'>) {
  return <button type="button" className={className ? `link ${className}` : 'link'} {...rest} />;
}

/** A short explanation on hover and focus. Never the only place of an information: touch screens do not show it. */
export function Tip({ text, children }: { text: ReactNode; children: ReactNode }) {
  return (
    <Tooltip.Root>
      <Tooltip.Trigger asChild>{children}</Tooltip.Trigger>
      <Tooltip.Portal>
        <Tooltip.Content className="tooltip" sideOffset={6} collisionPadding={8}>
          {text}
        </Tooltip.Content>
      </Tooltip.Portal>
    </Tooltip.Root>
  );
}

interface ActionButtonProps extends Omit<ComponentProps<typeof Button>, 'why' | 'onClick'> {
  of: Action;
}

/** The button of an action, called by its name unless it says otherwise. */
export function ActionButton({
  of,
  icon,
  children = icon ? undefined : of.name,
  ...rest
}: ActionButtonProps) {
  const studio = useStudio();
  const why = useStudioState((s) => of.whyNot?.(s) ?? null);
  return (
    <Button why={why} icon={icon} onClick={() => void perform(studio, of)} {...rest}>
      {children}
    </Button>
  );
}

interface FileButtonProps extends Omit<ComponentProps<typeof Button>, 'onClick'> {
  /** Name of the field behind it. */
  label: string;
  multiple?: boolean;
  accept?: string;
  /** A folder with all that is in it. */
  whole?: boolean;
  onFiles(files: readonly { path: string; file: File }[]): void;
  /** Asks in another way. */
  ask?: (() => void) | undefined;
}

/** Picks a whole folder; in every browser, but not in React's types. */
const WHOLE_FOLDER = { webkitdirectory: '' };

/** A button that asks for files. */
export function FileButton(props: FileButtonProps) {
  const { label, multiple, accept, whole = false, onFiles, ask, ...button } = props;
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <Button {...button} onClick={ask ?? (() => input.current?.click())} />
      <input
        ref={input}
        type="file"
        hidden
        multiple={multiple}
        accept={accept}
        {...(whole ? WHOLE_FOLDER : {})}
        aria-label={label}
        onChange={({ target }) => {
          const files = target.files ? inputFiles(target.files) : [];
          target.value = '';
          if (files.length > 0) onFiles(files);
        }}
      />
    </>
  );
}

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

interface FolderButtonProps {
  /** Name of the file input, where the browser has no picker. */
  label: string;
  why?: string | null;
  /** Called with the request for the folder, or the folder itself; null when the user dismissed the picker. */
  onPick(pick: () => Promise<PickedFiles | null>): void;
  children: ReactNode;
}

/** Asks for a folder of models, by the picker where there is one. */
export function FolderButton({ label, why = null, onPick, children }: FolderButtonProps) {
  return (
    <FileButton
      icon={FolderIcon}
      label={label}
      why={why}
      whole
      onFiles={(files) => onPick(async () => ({ files: [...files], handles: [] }))}
      ask={hasDirectoryPicker() ? () => onPick(pickModelFolder) : undefined}
    >
      {children}
    </FileButton>
  );
}
