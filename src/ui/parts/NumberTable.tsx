// biome-ignore-all lint/suspicious/noArrayIndexKey: heads and cells keep their places.
import type { ReactNode } from 'react';

interface NumberTableProps {
  caption?: string;
  className?: string;
  heads: readonly ReactNode[];
  /** The first cell heads its row; one alone heads those below it. */
  rows: readonly { key: string | number; cells: readonly ReactNode[]; chosen?: boolean }[];
}

/** Numbers under one another. */
export function NumberTable({ caption, className = '', heads, rows }: NumberTableProps) {
  return (
    <table className={`plain-table ${className}`} data-numbers>
      {caption ? <caption className="visually-hidden">{caption}</caption> : null}
      <thead>
        <tr>
          {heads.map((head, i) => (
            <th key={i} scope="col">
              {head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map(({ key, cells: [head, ...cells], chosen }) => (
          <tr key={key} data-chosen={chosen || undefined}>
            {cells.length === 0 ? (
              <th scope="rowgroup" colSpan={heads.length} className="rows-head">
                {head}
              </th>
            ) : (
              <th scope="row">{head}</th>
            )}
            {cells.map((cell, i) => (
              <td key={i}>{cell}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
