import { vi } from 'vitest';

/** `vi.waitFor` with the patience that a busy machine needs. */
export const waitFor: typeof vi.waitFor = (check, options = 60_000) => vi.waitFor(check, options);
