import { AmalgamError } from '../errors';

/**
 * True for a relative path with forward slashes that stays inside its folder: no empty, `.` or `..` part, no
 * backslash or NUL.
 */
export function isSafePath(path: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: NUL is one of the characters refused
  if (path === '' || /[\\\u0000]/.test(path)) return false;
  return path.split('/').every((part) => part !== '' && part !== '.' && part !== '..');
}

/** @throws UnsafePath when `path` could leave the folder `where` lists it in. */
export function checkSafePath(path: string, where: string): void {
  if (isSafePath(path)) return;
  throw new AmalgamError(
    'UnsafePath',
    `${where} lists a file called ${JSON.stringify(path)}, which is not a path inside it.`,
    'Rename the file, or use another copy of the model.',
  );
}
