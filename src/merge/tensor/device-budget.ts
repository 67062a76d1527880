/** Sizes that the plan names and the run keeps to; without the kernels of the run. */

/** Device memory a run may take by default: far below what any WebGPU device has, large enough to hide latency. */
export const DEFAULT_DEVICE_BYTES = 96 * 1024 * 1024;

/** Stored bytes of a tensor that stay on the device between its passes, at most, where the engine has no word on it. */
export const DEFAULT_KEPT_BYTES = 64 * 1024 * 1024;

/** Bytes of device memory per element of a tile with `models` contributors. */
export function bytesPerElement(models: number): number {
  return 4 * (2 * (models + 1) + 2);
}
