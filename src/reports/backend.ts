import { displayName } from '../formats/names';
import { formatSeconds } from '../formats/quantity';

/** Where a job computes: a graphics device through WebGPU, or the processor. */
export type BackendKind = 'webgpu' | 'cpu';

/** Name of the processor among adapters. */
export const CPU_ADAPTER = 'WebAssembly';

/** `auto` takes WebGPU unless there is no adapter or only a software one. */
export type BackendChoice = 'auto' | BackendKind;

/** Where a report was computed, and how long that took. */
export interface Computed {
  engine: BackendKind;
  adapter: string;
  seconds: number;
}

/** `in 3.2 s on webgpu (Apple M1)` */
export function computedWords({ engine, adapter, seconds }: Computed): string {
  return `in ${formatSeconds(seconds)} on ${engine} (${displayName(adapter)})`;
}
