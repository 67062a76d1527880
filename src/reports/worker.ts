import type { BackendKind } from './backend';
import type { MaskFacts } from './importance';

export interface WorkerFacts {
  /** The engine `auto` takes here. */
  auto: BackendKind;
  webgpu: { available: boolean; adapter: string; isFallback: boolean; maxBufferBytes: number; why?: string };
  cpu: { adapter: string };
  storage: {
    available: boolean;
    why?: string;
    /** The browser keeps nothing: so many bytes of files fit into memory, until the tab is closed. */
    memoryBytes?: number;
  };
  version: string;
}

export interface CacheFacts {
  /** Masks, solved changes and texts that models wrote. */
  masks: MaskFacts[];
  blobs: { sha256: string; bytes: number; name: string }[];
  /** Merged models that wait to be downloaded; `files` are their paths, none while incomplete. */
  outputs: { name: string; bytes: number; complete: boolean; files: string[] }[];
}
