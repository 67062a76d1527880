/** Where the keyboard leads in a heatmap. Pure. */
import type { Cell, CellRow, Heatmap } from './heatmap-data';

/** The cell that Tab reaches first. */
export function firstName(data: Heatmap): string | null {
  return data.rows[0]?.cells.find((c) => c)?.name ?? data.loose[0]?.name ?? null;
}

/** `name` if it is of this row, else null. */
export function nameWithin(row: CellRow, name: string | null): string | null {
  return name !== null && row.cells.some((c) => c?.name === name) ? name : null;
}

/** Where a key leads from a cell: the nearest cell that exists, or null at the edge and for other keys. */
export function nextName(data: Heatmap, from: string, key: string, far: boolean): string | null {
  const lines = [...data.rows.map((r) => r.cells), ...data.loose.map((c) => [c])];
  const y = lines.findIndex((line) => line.some((c) => c?.name === from));
  const x = lines[y]?.findIndex((c) => c?.name === from) ?? -1;
  const line = lines[y];
  if (!line) return null;
  const name = (cell: Cell | null | undefined) => cell?.name ?? null;
  const right = line.slice(x + 1).filter((c) => c !== null);
  const left = line.slice(0, x).filter((c) => c !== null);
  const column = (l: readonly (Cell | null)[]) => l[Math.min(x, l.length - 1)] ?? l.find((c) => c !== null);
  switch (key) {
    case 'ArrowRight':
      return name(far ? right.at(-1) : right[0]);
    case 'ArrowLeft':
      return name(far ? left[0] : left.at(-1));
    case 'Home':
      return name(left[0]);
    case 'End':
      return name(right.at(-1));
    case 'ArrowDown':
      return name(column((far ? lines.at(-1) : lines[y + 1]) ?? []));
    case 'ArrowUp':
      return name(column((far ? lines[0] : lines[y - 1]) ?? []));
    default:
      return null;
  }
}
