import { displayName } from '../../formats/names';

/**
 * A tensor's name in a table, without what nearly all names share (`model.` and `.weight`); the whole name is its
 * tooltip. Where it is still too long its beginning is cut off: the end tells tensors apart.
 */
export function TensorName({ name }: { name: string }) {
  return (
    <span className="tensor-name" title={displayName(name)}>
      <bdi>{shortTensorName(name)}</bdi>
    </span>
  );
}

/** As it is shown: characters that cannot be seen, or turn the direction of writing, are spelled out. */
export function shortTensorName(name: string): string {
  return displayName(name.replace(/^model\./, '').replace(/\.weight$/, ''));
}
