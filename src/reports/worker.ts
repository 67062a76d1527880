import type { BackendKind } from './backend';
import type { MaskInfo } from './importance';

export interface WorkerInfo {
  /** The engine `auto` takes here. */
  auto: BackendKind;
  webgpu: { available: boolean; adapter: string; isFallback: boolean; maxBufferBytes: number; why?: string };
  cpu: { adapter: string };
  storage: {
    available: boolean;
    why?: string;
    /** The browser stores nothing: so many bytes of files fit into memory, until the tab is closed. */
    memoryBytes?: number;
  };
  version: string;
}

export interface CacheInfo {
  /** Masks, solved changes and texts that models wrote. */
  masks: MaskInfo[];
  blobs: { sha256: string; bytes: number; name: string }[];
  /** Merged models that wait to be downloaded; `files` are their paths, none while incomplete. */
  outputs: { name: string; bytes: number; complete: boolean; files: string[] }[];
}
