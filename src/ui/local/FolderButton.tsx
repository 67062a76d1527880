import type { ReactNode } from 'react';
import { FileButton } from '../parts/FileButton';
import { FolderIcon } from '../parts/icons';
import { hasDirectoryPicker, type PickedFiles, pickModelFolder } from './local-files';

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
