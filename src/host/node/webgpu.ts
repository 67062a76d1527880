import { AmalgamError } from '../../errors';

/**
 * Gives this process WebGPU as a browser has it: Dawn, from the optional package `webgpu`. On Linux it needs a Vulkan
 * driver; `VK_ICD_FILENAMES` chooses one.
 * @throws AmalgamError `NoWebGpu` when the package is not installed, or has nothing for this platform
 */
export async function offerWebGpu(): Promise<void> {
  const { create, globals } = await import('webgpu').catch((cause: unknown) => {
    throw new AmalgamError(
      'NoWebGpu',
      'WebGPU outside of a browser needs the package webgpu, which is not installed here.',
      'Install it beside the command ("npm install webgpu"), or use --engine cpu.',
      { cause },
    );
  });
  Object.assign(globalThis, globals);
  Object.defineProperty(navigator, 'gpu', { value: create([]), configurable: true });
}
