import { AmalgamError } from '../../errors';

const FILTERS = ['validation', 'out-of-memory', 'internal'] as const;

/** The three error scopes around everything between two reads. */
export class ErrorScopes {
  private isOpen = false;

  constructor(
    private readonly device: GPUDevice,
    private readonly adapter: string,
  ) {}

  open(): void {
    if (this.isOpen) return;
    for (const filter of FILTERS) this.device.pushErrorScope(filter);
    this.isOpen = true;
  }

  /** Ends the scopes; resolves with the first error they caught, as ours. */
  async close(): Promise<AmalgamError | null> {
    if (!this.isOpen) return null;
    this.isOpen = false;
    const popped = await Promise.all([...FILTERS].reverse().map(() => this.device.popErrorScope()));
    const error = popped.find((e) => e !== null);
    if (!error) return null;
    return error instanceof GPUOutOfMemoryError
      ? new AmalgamError(
          'GpuOutOfMemory',
          `The graphics device (${this.adapter}) is out of memory: ${error.message}`,
          'Close other tabs that use the GPU, choose a smaller tile, or the CPU engine.',
        )
      : new AmalgamError(
          'GpuValidation',
          `The graphics device (${this.adapter}) refused a command: ${error.message}`,
          'Nothing was written. Please report this with the adapter name, or choose the CPU engine.',
        );
  }
}
