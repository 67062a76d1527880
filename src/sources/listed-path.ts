import { AmalgamError } from '../errors';

/**
 * Checks a path in a server's listing of a folder. Folders hold files of any name, most of which nobody reads, so
 * only a path that would lead out of the folder is refused; names that come from inside a file, and names that are
 * written, obey the stricter rules of `formats/names`.
 * @throws UnsafePath for an empty, `.` or `..` part, a backslash or a NUL.
 */
export function checkListedPath(path: string, folder: string): void {
  const inside = path.split('/').every((part) => part !== '' && part !== '.' && part !== '..');
  if (inside && !path.includes('\\') && !path.includes('\0')) return;
  throw new AmalgamError(
    'UnsafePath',
    `The listing of ${folder} has a file called ${JSON.stringify(path)}, which is not a path inside it.`,
    'Use another copy of the model.',
  );
}
