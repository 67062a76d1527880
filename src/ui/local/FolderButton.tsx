import { type ReactNode, useRef } from 'react';
import { Button } from '../parts/Button';
import { FolderIcon } from '../parts/icons';
import { hasDirectoryPicker, inputFiles, type PickedFiles, pickModelFolder } from './local-files';

interface FolderButtonProps {
  /** Name of the file input, where the browser has no picker. */
  label: string;
  why?: string | null;
  /** Called with the request for the folder, or the folder itself; null when the user dismissed the picker. */
  onPick(pick: () => Promise<PickedFiles | null>): void;
  children: ReactNode;
}

/** Picks a whole folder; in every browser, but not in React's types. */
const WHOLE_FOLDER = { webkitdirectory: '' };

/** Asks for a folder of models, by the picker where there is one. */
export function FolderButton({ label, why = null, onPick, children }: FolderButtonProps) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <Button
        why={why}
        onClick={() => (hasDirectoryPicker() ? onPick(pickModelFolder) : input.current?.click())}
      >
        <FolderIcon />
        {children}
      </Button>
      <input
        ref={input}
        type="file"
        hidden
        {...WHOLE_FOLDER}
        aria-label={label}
        onChange={({ target }) => {
          const files = target.files ? inputFiles(target.files) : [];
          target.value = '';
          if (files.length > 0) onPick(async () => ({ files, handles: [] }));
        }}
      />
    </>
  );
}
