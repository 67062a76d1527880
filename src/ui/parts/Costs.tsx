export type Cost = [label: string, value: string, more: string];

interface CostsProps {
  items: readonly Cost[];
  /** Long words of context break into lines instead of being cut. */
  wraps?: boolean;
}

/** Figures side by side, each with its name and a few words of context. */
export function Costs({ items, wraps = false }: CostsProps) {
  return (
    <dl className="columns costs panel">
      {items.map(([label, value, more]) => (
        <div key={label}>
          <dt className="label">{label}</dt>
          <dd className="grid">
            <strong>{value}</strong>
            {wraps ? (
              <span className="small quiet">{more}</span>
            ) : (
              <span className="small quiet truncate" title={more}>
                {more}
              </span>
            )}
          </dd>
        </div>
      ))}
    </dl>
  );
}
