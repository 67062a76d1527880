/** How the metadata and the report name an input file. */
export function inputName(folder: string, file: string): string {
  return `${folder}/${file}`;
}
