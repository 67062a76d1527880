/** Files that a tool has written: where they are, and under which name. */

import type { NamedDestination } from './run';
import type { SavedFile, SavedOutput } from './saved-state';
import type { StudioState } from './studio-state';

export function savedOutput(destination: NamedDestination, files: SavedFile[]): SavedOutput {
  const { kind, name } = destination;
  return { kind, name, folder: destination.kind === 'folder' ? destination.handle.name : null, files };
}

/** Why nothing can be saved where the user wants it, or null. */
export function whyNotSaved({ output, engine }: StudioState): string | null {
  const storage = engine.info?.storage;
  if (output.kind === 'folder' || !storage || storage.available) return null;
  return 'This browser offers no storage to keep files in: save to a folder instead.';
}

/** A name for files: letters, digits, dot, dash and underscore only, and no leading dot. */
export function fileName(name: string): string {
  return name.replace(/[^A-Za-z0-9._-]+/g, '-').replace(/^[.-]+/, '');
}
