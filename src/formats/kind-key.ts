/** Tensors of a kind of adapter that is no LoRA, by what their keys end with. */

export interface KindParts {
  /** The end of their key, `.weight` and the adapter's name aside: one part of the path or two, `#` for any number. */
  parts: readonly string[];
  /** Those among them that a module may lack. */
  optional?: readonly string[];
  /** Tensors at the root of the file. */
  shared?: readonly string[];
  /** What a file lacks that has shared tensors alone. */
  lacking?: string;
}

/** The module of a path and the tensor's part, the module '' for a shared one; undefined for any other path. */
export function kindPart(
  path: string,
  { parts, shared = [] }: KindParts,
): { module: string; part: string } | undefined {
  const places = path.replace(/\.weight$/, '').split('.');
  const named = places.filter((place, i) => place !== 'default' || i < places.length - 2);
  for (const length of [1, 2]) {
    const part = named.slice(-length).join('.');
    const pattern = part.replace(/(?<=\.)\d+$/, '#');
    const module = named.slice(0, -length).join('.');
    if (module === 'base_model' && shared.includes(pattern)) return { module: '', part };
    if (module !== '' && parts.includes(pattern)) return { module, part };
  }
  return undefined;
}
