/** Names of tensors of modules behind the body of a sentence encoder, which lie in folders of their own. */

/** Of a tensor of such a module (`2_Dense/linear.weight`) the folder that it lies in, with its slash. */
export function moduleFolder(name: string): string | undefined {
  return /^[^/]+\//.exec(name)?.[0];
}

/** What a tensor is called in its file. */
export function nameInFile(name: string): string {
  return name.slice(moduleFolder(name)?.length ?? 0);
}
