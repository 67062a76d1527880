/**
 * The synchronous file handles of OPFS, which TypeScript's window library leaves out: they exist in dedicated workers
 * only. Counts must be checked: a full storage can show as a wrong count without an exception.
 */
interface FileSystemSyncAccessHandle {
  /** Absent where the browser knows no modes. */
  readonly mode?: string;
  read(buffer: ArrayBufferView<ArrayBuffer>, options?: { at: number }): number;
  write(buffer: ArrayBufferView<ArrayBuffer>, options?: { at: number }): number;
  truncate(size: number): void;
  getSize(): number;
  flush(): void;
  close(): void;
}

declare const FileSystemSyncAccessHandle: { prototype: FileSystemSyncAccessHandle };

interface FileSystemFileHandle {
  /**
   * @param options `read-only` lets several readers in where the browser knows the mode; others ignore it.
   * @throws NoModificationAllowedError while another handle is open.
   */
  createSyncAccessHandle(options?: {
    mode: 'readwrite' | 'read-only' | 'readwrite-unsafe';
  }): Promise<FileSystemSyncAccessHandle>;
}
