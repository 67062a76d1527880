import { AmalgamError } from '../../errors';
import { contentOf, entriesOf } from '../../platform';
import type { LocalFile } from '../../reports/models';

// Small texts saved in this browser. A browser without storage (private windows, strict settings) forgets them.

/** For all tabs and visits, or for this tab and its reloads. */
type Keeper = 'browser' | 'tab';

const storageOf = (keeper: Keeper) => (keeper === 'tab' ? sessionStorage : localStorage);

/** The text saved under a key, or null. */
export function remembered(key: string, keeper: Keeper = 'browser'): string | null {
  try {
    return storageOf(keeper).getItem(`amalgam.${key}`);
  } catch {
    return null;
  }
}

/** Saves a text under a key; null deletes it. */
export function remember(key: string, value: string | null, keeper: Keeper = 'browser'): void {
  try {
    if (value === null) storageOf(keeper).removeItem(`amalgam.${key}`);
    else storageOf(keeper).setItem(`amalgam.${key}`, value);
  } catch {
    // the choice holds until the tab closes
  }
}

/** Small base models that many adapters are made for, to begin with: bytes of their weights as the Hub has them. */
export const KNOWN_BASES: readonly { id: string; bytes: number }[] = [
  { id: 'HuggingFaceTB/SmolLM2-135M', bytes: 269_060_552 },
  { id: 'HuggingFaceTB/SmolLM2-360M', bytes: 723_674_912 },
  { id: 'Qwen/Qwen2.5-0.5B', bytes: 988_097_824 },
  { id: 'meta-llama/Llama-3.2-1B', bytes: 2_471_645_608 },
  { id: 'Qwen/Qwen2.5-1.5B', bytes: 3_087_467_144 },
  { id: 'HuggingFaceTB/SmolLM2-1.7B', bytes: 3_422_777_952 },
];

// Folders and files from pickers, inputs and drops, as a flat list of paths. Files are not read here.

/** A picked or dropped folder or file, with the path that the paths of its files begin with. */
export interface PickedHandle {
  path: string;
  handle: FileSystemHandle;
}

/** Files with the handles of the folders they are in, where the browser gives any. */
export interface PickedFiles {
  files: LocalFile[];
  handles: PickedHandle[];
}

/** Folders in folders are followed this far: a model folder, its adapters, their checkpoints. */
const MAX_DEPTH = 4;

/** Every file of a picked folder, or the picked file. @param path what the paths begin with; default the handle's name */
export async function walkHandle(handle: FileSystemHandle, path = handle.name): Promise<LocalFile[]> {
  const found: LocalFile[] = [];
  await walk(handle, path, 0, found);
  return found;
}

/** The files of an `<input type="file">`, of a whole folder or one by one. */
export function inputFiles(list: FileList): LocalFile[] {
  return [...list]
    .map((file) => ({ path: file.webkitRelativePath || file.name, file }))
    .filter(({ path }) => !path.split('/').some(isHidden));
}

/** Folders and files dropped on the page. Must be called within the drop event: the list empties afterwards. */
export async function droppedFiles(transfer: DataTransfer): Promise<PickedFiles> {
  const dropped = [...transfer.items]
    .filter((item) => item.kind === 'file')
    .map((item) => {
      const entry = item.webkitGetAsEntry();
      const handle = entry?.isDirectory ? (item as HandleItem).getAsFileSystemHandle?.() : undefined;
      return { entry, file: item.getAsFile(), handle };
    });
  const files: LocalFile[] = [];
  const handles: PickedHandle[] = [];
  for (const { entry, file, handle } of dropped) {
    if (entry) await walkEntry(entry, entry.name, 0, files);
    else if (file) files.push({ path: file.name, file });
    // without its handle a folder is opened all the same, and chosen again after a reload
    const kept = await handle?.catch(() => null);
    if (kept) handles.push({ path: kept.name, handle: kept });
  }
  return { files, handles };
}

/** Not in TypeScript's library yet: https://wicg.github.io/file-system-access/#drag-and-drop */
interface HandleItem {
  getAsFileSystemHandle?(): Promise<FileSystemHandle | null>;
}

async function walk(
  handle: FileSystemHandle,
  path: string,
  depth: number,
  found: LocalFile[],
): Promise<void> {
  if (handle.kind === 'file') {
    found.push({ path, file: await contentOf(handle as FileSystemFileHandle) });
    return;
  }
  if (depth > MAX_DEPTH) return;
  for (const [name, child] of await entriesOf(handle as FileSystemDirectoryHandle)) {
    if (!isHidden(name)) await walk(child, `${path}/${name}`, depth + 1, found);
  }
}

async function walkEntry(
  entry: FileSystemEntry,
  path: string,
  depth: number,
  found: LocalFile[],
): Promise<void> {
  if (isHidden(entry.name)) return;
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) =>
      (entry as FileSystemFileEntry).file(resolve, reject),
    );
    found.push({ path, file });
    return;
  }
  if (depth >= MAX_DEPTH) return;
  for (const child of await listEntries(entry as FileSystemDirectoryEntry)) {
    await walkEntry(child, `${path}/${child.name}`, depth + 1, found);
  }
}

/** A directory reader hands out its entries in batches (100 in Chromium) until one is empty. */
async function listEntries(directory: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
  const reader = directory.createReader();
  const all: FileSystemEntry[] = [];
  for (;;) {
    const batch = await new Promise<FileSystemEntry[]>((resolve, reject) =>
      reader.readEntries(resolve, reject),
    );
    if (batch.length === 0) return all;
    all.push(...batch);
  }
}

/**
 * Why a picked folder has no model in it where it is one of the Hub's cache: what lies in its snapshots are links, and
 * Chromium follows none from a folder (https://crbug.com/1345275). Null for any other folder.
 */
export function whyLinked({ files, handles }: PickedFiles): AmalgamError | null {
  const isCache = (path: string) => /^(models--.*|snapshots|[0-9a-f]{40})$/.test(path);
  const inCache = [...handles.map((h) => h.path), ...files.map((f) => f.path)]
    .flatMap((path) => path.split('/'))
    .some(isCache);
  if (
    !inCache ||
    files.some(({ path }) => /(^|\/)(adapter_)?config\.json$|\.safetensors$|\.gguf$/.test(path))
  )
    return null;
  return new AmalgamError(
    'NotFound',
    'This is a folder of the Hub’s cache: its files are links, and this browser follows no links in a folder.',
    'Choose the files inside snapshots/… instead, all of them at once, or get the model from the Hub here.',
  );
}

/** `.git`, `.cache` and the like: never part of a model, often thousands of files. */
function isHidden(name: string): boolean {
  return name.startsWith('.');
}

// The browser's directory picker, where there is one.

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

// Hands a file to the browser's own download.

/** Long enough for any browser to have begun reading, in milliseconds. */
const KEEP_URL_MS = 60_000;
export function saveFile(file: Blob, name: string): void {
  const url = URL.createObjectURL(file);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), KEEP_URL_MS);
}

export function saveText(text: string, name: string): void {
  saveFile(new Blob([text], { type: 'text/plain;charset=utf-8' }), name);
}
