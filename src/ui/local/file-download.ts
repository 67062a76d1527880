/** Hands a file to the browser's own download. */

/** Long enough for any browser to have begun reading, in milliseconds. */
const KEEP_URL_MS = 60_000;
const BETWEEN_FILES_MS = 250;

export function saveFile(file: Blob, name: string): void {
  const url = URL.createObjectURL(file);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), KEEP_URL_MS);
}

/** Several files, one after the other: browsers drop downloads that begin in the same moment. */
export function saveFiles(files: readonly { name: string; file: Blob }[]): void {
  for (const [i, { name, file }] of files.entries()) {
    setTimeout(() => saveFile(file, name), i * BETWEEN_FILES_MS);
  }
}

export function saveText(text: string, name: string): void {
  saveFile(new Blob([text], { type: 'text/plain;charset=utf-8' }), name);
}
