import { Swatch } from '../parts/Swatch';
import type { Contributor } from '../state/runs';
import { useShownTheme } from '../studio-context';
import { colorScale } from './color-scale';
import { metricById } from './metrics';

/** Pairwise cosines of a tensor's task vectors: a small table, coloured around 0. */
export function CosineMatrix({
  labels,
  cosine,
}: {
  labels: readonly Contributor[];
  cosine: readonly (readonly number[])[];
}) {
  const scale = colorScale(metricById('cosine'), -1, 1, useShownTheme());
  return (
    <table className="cosine">
      <thead>
        <tr>
          <td />
          {labels.map((c) => (
            <th key={c.id} scope="col" title={c.label}>
              <Swatch colour={c.colour} label={c.label} />
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {labels.map((row, i) => (
          <tr key={row.id}>
            <th scope="row" className="truncate">
              {row.label}
            </th>
            {labels.map((column, j) => {
              const value = cosine[i]?.[j];
              return (
                <td key={column.id}>
                  {value === undefined || i === j ? (
                    <span className="faint">{i === j ? '·' : '–'}</span>
                  ) : (
                    <span className="cosine-value">
                      <span
                        className="cosine-chip"
                        style={{ background: scale.color(value) }}
                        aria-hidden="true"
                      />
                      {value.toFixed(2).replace('-', '\u2212')}
                    </span>
                  )}
                </td>
              );
            })}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
