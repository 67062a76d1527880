import { AmalgamError } from '../errors';
import { safeRelativePath } from '../formats/names';
import { counted } from '../formats/quantity';

/**
 * Error of a write, in words. The browser reports it by the name of a DOMException; Firefox reports a full disk as
 * `InvalidStateError` once the quota is used up.
 *
 * @param what the file or folder at work, as the user knows it
 */
export function destinationError(thrown: unknown, what: string): AmalgamError {
  if (thrown instanceof AmalgamError) return thrown;
  const name = thrown instanceof Error ? thrown.name : '';
  const options = { cause: thrown };
  const { code } = (thrown ?? {}) as { code?: unknown };
  if (NO_SPACE.has(code)) return storageFull(what, options);
  switch (name) {
    case 'QuotaExceededError':
      return storageFull(what, options);
    case 'NotAllowedError':
    case 'SecurityError':
      return failed(`The browser no longer allows writing ${what}.`, 'Choose the folder again.', options);
    case 'NotFoundError':
      return failed(`${what} was moved or deleted while it was written.`, 'Choose a folder again.', options);
    case 'NoModificationAllowedError':
      return failed(
        `${what} is in use by another tab or program.`,
        'Close the other one and try again.',
        options,
      );
    case 'AbortError':
      return failed(
        `The browser's download check refused ${what}.`,
        'Choose another folder, or look into the browser’s security settings.',
        options,
      );
    default: {
      const own = thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : String(thrown);
      const [reason, hint] = REASONS.get(code) ?? [own, 'Check the free space and the folder’s permissions.'];
      return failed(`${what} could not be written: ${reason}.`, hint, options);
    }
  }
}

const NOT_ALLOWED = ['it is not allowed', 'Choose a folder that you may write to.'] as const;
const IN_THE_WAY = ['a file has the place of a folder', 'Choose another path.'] as const;

/** What a failure is that Node reports by this code, and what cures it. */
const REASONS = new Map<unknown, readonly [reason: string, hint: string]>([
  ['EACCES', NOT_ALLOWED],
  ['EPERM', NOT_ALLOWED],
  ['EROFS', ['the disk is read-only', 'Choose a folder that you may write to.']],
  ['EEXIST', IN_THE_WAY],
  ['ENOTDIR', IN_THE_WAY],
  ['ENOENT', ['a folder on the way takes no files, or was moved', 'Choose a folder that takes new files.']],
  ['ENAMETOOLONG', ['the name is too long', 'Choose a shorter name.']],
  ['ELOOP', ['its links lead in a circle', 'Choose another path.']],
  [
    'EFBIG',
    ['the disk or a limit of this process (ulimit -f) allows no file of this size', 'Choose another disk.'],
  ],
  ['EIO', ['the disk fails', 'Choose another one.']],
]);

/** By which Node reports a full disk. */
const NO_SPACE = new Set<unknown>(['ENOSPC', 'EDQUOT']);

/** For `catch`: throws {@link destinationError} of what was thrown. */
export const failing =
  (what: string) =>
  (thrown: unknown): never => {
    throw destinationError(thrown, what);
  };

/** There is no room left for `what`. */
export function storageFull(what: string, options?: { cause: unknown }): AmalgamError {
  return new AmalgamError(
    'StorageFull',
    `There is no space left for ${what}.`,
    'Free disk space or delete cached models and old outputs, then merge again.',
    options,
  );
}

/** A file shorter or longer than the bytes written to it. Sizes are compared because writes can fail silently. */
export function shortFile(what: string, expected: number, actual: number): AmalgamError {
  return failed(
    `${what} should have ${counted(expected, 'byte')} but has ${actual}.`,
    'The disk may be full or the browser’s storage limited (private windows are); free space or choose a folder.',
  );
}

/**
 * The parts of an output path, each a plain file or folder name.
 * @throws UnsafePath when the path would leave the output folder.
 */
export function outputPathParts(path: string): string[] {
  return safeRelativePath(path).split('/');
}

/**
 * The name of an output folder, checked.
 * @throws UnsafePath when it is not one plain folder name.
 */
export function outputName(name: string): string {
  const parts = outputPathParts(name);
  if (parts.length === 1 && name.trim() === name) return name;
  throw new AmalgamError(
    'UnsafePath',
    `An output folder cannot be called ${JSON.stringify(name)}.`,
    'Use one name without slashes and without spaces at its ends.',
  );
}

/** The output folder `name` has something in it. */
export function notEmpty(name: string): AmalgamError {
  return new AmalgamError(
    'DestinationNotEmpty',
    `The output folder ${name} already exists and is not empty.`,
    'Choose another name, or move the existing folder away; Amalgam never overwrites.',
  );
}

function failed(message: string, hint: string, options?: { cause: unknown }): AmalgamError {
  return new AmalgamError('DestinationFailed', message, hint, options);
}
