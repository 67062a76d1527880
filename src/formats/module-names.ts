/** Names of tensors of modules behind the body of a sentence encoder, which lie in folders of their own. */

/**
 * Of a tensor of such a module (`2_Dense/linear.weight`) the folder that it lies in, with its slash: a number and a kind, as
 * sentence-transformers names them. A tensor of another model may have any other slash in its name.
 */
export function moduleFolder(name: string): string | undefined {
  return /^\d{1,3}_[A-Za-z]\w*\//.exec(name)?.[0];
}

/** What a tensor is called in its file. */
export function nameInFile(name: string): string {
  return name.slice(moduleFolder(name)?.length ?? 0);
}
