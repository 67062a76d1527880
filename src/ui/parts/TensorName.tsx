import { displayName } from '../../formats/names';

/**
 * A tensor's name in a table, without what nearly all names share (`model.` and `.weight`); the whole name is its
 * tooltip. Where it is still too long it is cut in the middle: the beginning has the layer, the end the module.
 */
export function TensorName({ name }: { name: string }) {
  const short = shortTensorName(name);
  const parts = short.split('.');
  const end = parts.length > 2 ? parts.slice(-2).join('.') : '';
  return (
    <span className="tensor-name" title={displayName(name)}>
      {end === '' ? (
        <bdi className="truncate">{short}</bdi>
      ) : (
        <>
          {/* heard as one word */}
          <span className="visually-hidden">{short}</span>
          <bdi className="truncate" aria-hidden="true">
            {short.slice(0, -end.length)}
          </bdi>
          <bdi aria-hidden="true">{end}</bdi>
        </>
      )}
    </span>
  );
}

/** Name for display: characters that are invisible, or reverse the direction of writing, are spelled out. */
function shortTensorName(name: string): string {
  return displayName(name.replace(/^model\./, '').replace(/\.weight$/, ''));
}
