/**
 * A tensor's name in a table, without what nearly all names share (`model.` and `.weight`); the whole name is its
 * tooltip. Where it is still too long its beginning is cut off: the end tells tensors apart.
 */
export function TensorName({ name }: { name: string }) {
  return (
    <span className="tensor-name" title={name}>
      <bdi>{shortTensorName(name)}</bdi>
    </span>
  );
}

export function shortTensorName(name: string): string {
  return name.replace(/^model\./, '').replace(/\.weight$/, '');
}
