import { type ComponentProps, useRef } from 'react';
import { inputFiles } from '../local/local-files';
import { Button } from './Button';

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
