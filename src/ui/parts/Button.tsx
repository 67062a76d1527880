import { Tooltip } from 'radix-ui';
import { type ComponentProps, type ReactNode, useEffect, useId, useRef, useState } from 'react';
import { hasDirectoryPicker, inputFiles, type PickedFiles, pickModelFolder } from '../local/local-files';
import { type Action, perform } from '../state/actions';
import { useStudio, useStudioState } from '../studio-context';
import { CheckIcon, CopyIcon, FolderIcon } from './icons';

interface ButtonProps extends Omit<ComponentProps<'button'>, 'disabled'> {
  variant?: 'plain' | 'primary' | 'quiet';
  /** Why the button cannot be pressed now; it stays focusable and shows this. */
  why?: string | null | undefined;
  /** Tooltip while it can be pressed. */
  tip?: string;
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
export function ActionButton({ of, children = of.name, ...rest }: ActionButtonProps) {
  const studio = useStudio();
  const why = useStudioState((s) => of.whyNot?.(s) ?? null);
  return (
    <Button why={why} onClick={() => void perform(studio, of)} {...rest}>
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
