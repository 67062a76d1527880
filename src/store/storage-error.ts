import { AmalgamError } from '../errors';

/**
 * Error of the browser's storage, in words.
 * @param what the stored thing at work, as the user knows it.
 */
export function storageError(thrown: unknown, what: string): AmalgamError {
  if (thrown instanceof AmalgamError) return thrown;
  const name = thrown instanceof Error ? thrown.name : '';
  switch (name) {
    case 'QuotaExceededError':
      return storageFull(what, thrown);
    case 'NotFoundError':
      return new AmalgamError(
        'StorageFailed',
        `${what} is gone: the browser's storage was cleared while Amalgam was using it.`,
        'Start again; what is missing is downloaded again.',
        { cause: thrown },
      );
    case 'NoModificationAllowedError':
      return new AmalgamError(
        'Busy',
        `${what} is in use, here or in another tab.`,
        'Wait until it is finished, or close the other tab.',
        { cause: thrown },
      );
    default:
      return new AmalgamError(
        'StorageFailed',
        `The browser's storage failed for ${what} (${thrown instanceof Error ? `${name}: ${thrown.message}` : thrown}).`,
        'Check that the disk has free space, reload the page and start again.',
        { cause: thrown },
      );
  }
}

/** There is no room for `what`. */
export function storageFull(what: string, cause?: unknown): AmalgamError {
  return new AmalgamError(
    'StorageFull',
    `The browser's storage has no room for ${what}.`,
    'Delete models from the cache or free disk space, then go on. Private windows have little room: use a normal one.',
    { cause },
  );
}
