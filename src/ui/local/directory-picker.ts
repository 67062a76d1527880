/** The browser's directory picker, where there is one. */
import { type PickedFiles, walkHandle } from './local-files';

interface PickerWindow {
  showDirectoryPicker?(options: {
    id?: string;
    mode?: 'read' | 'readwrite';
  }): Promise<FileSystemDirectoryHandle>;
}

export function hasDirectoryPicker(): boolean {
  return typeof (globalThis as PickerWindow).showDirectoryPicker === 'function';
}

/** Asks for a folder of models and lists its files; null when the user dismissed the picker. */
export async function pickModelFolder(): Promise<PickedFiles | null> {
  const handle = await pick({ id: 'models', mode: 'read' });
  return handle && { files: await walkHandle(handle), handles: [{ path: handle.name, handle }] };
}

/** Asks for the folder that outputs go into, writable; null when the user dismissed the picker. */
export function pickOutputFolder(): Promise<FileSystemDirectoryHandle | null> {
  return pick({ id: 'merged', mode: 'readwrite' });
}

async function pick(options: {
  id: string;
  mode: 'read' | 'readwrite';
}): Promise<FileSystemDirectoryHandle | null> {
  const { showDirectoryPicker } = globalThis as PickerWindow;
  if (!showDirectoryPicker) return null;
  try {
    return await showDirectoryPicker.call(globalThis, options);
  } catch (thrown) {
    if (thrown instanceof DOMException && thrown.name === 'AbortError') return null;
    throw thrown;
  }
}
