/** Layout of a heatmap, for the canvas under its cells. Same tracks as in `charts.css`. Pure. */
import type { Heatmap, LayerGrid } from './heatmap-data';

/** Between cells, both ways. In pixels, as everything here. */
const GAP = 2;
const NUMBER_WIDTH = 18;
const LEAST_CELL_WIDTH = 9;
/** A chart of at least this width has room for the values in its cells. */
const WIDE = 600;
const MEAN_INSET = 6;
const MEAN_HEIGHT = 8;
const LOOSE_HEIGHT = 16;
const LOOSE_SPACE = 4;

/** Parts that a grid shows, and its row height: blocks of one canvas share numbers and means. */
export interface Arrangement {
  /** The numbers of the layers on the left. */
  numbers: boolean;
  /** The mean of each layer on the right. */
  means: boolean;
  /** Height of a row; default: by the number of rows. */
  cell?: number;
}

/** A chart of its own. */
export const ALONE: Arrangement = { numbers: true, means: true };

export interface HeatmapLayout {
  width: number;
  height: number;
  /** Values can be written into the cells. */
  wide: boolean;
  cellWidth: number;
  cellHeight: number;
  looseHeight: number;
  meanLeft: number;
  meanWidth: number;
  meanHeight: number;
  /** Left edge of a column, top edge of a row of layers, and of a row of no layer. */
  left(column: number): number;
  top(row: number): number;
  looseTop(row: number): number;
}

/** The layout of a chart so many pixels wide. */
export function heatmapLayout(
  data: Heatmap,
  columns: number,
  available: number,
  arrangement: Arrangement = ALONE,
): HeatmapLayout {
  const wide = available >= WIDE;
  const meanTrack = !arrangement.means ? 0 : wide ? 64 : 40;
  const numberTrack = arrangement.numbers ? NUMBER_WIDTH : 0;
  const fixed = numberTrack + meanTrack + GAP * (columns + 1);
  const cellWidth = Math.max(
    arrangement.means ? LEAST_CELL_WIDTH : 3,
    (available - fixed) / Math.max(1, columns),
  );
  const width = fixed + cellWidth * columns;
  const cell = arrangement.cell ?? cellHeight(data.rows.length);
  const top = (row: number) => row * (cell + GAP);
  const rows = data.rows.length;
  const space = rows > 0 ? LOOSE_SPACE : 0;
  const looseTop = (row: number) => top(rows) + space + row * (LOOSE_HEIGHT + GAP);
  return {
    width,
    height: data.loose.length > 0 ? looseTop(data.loose.length) - GAP : top(rows) - GAP,
    wide,
    cellWidth,
    cellHeight: cell,
    looseHeight: Math.min(LOOSE_HEIGHT, cell),
    meanLeft: width - meanTrack + MEAN_INSET,
    meanWidth: Math.max(0, meanTrack - MEAN_INSET),
    meanHeight: Math.min(MEAN_HEIGHT, cell),
    left: (column) => numberTrack + GAP + column * (cellWidth + GAP),
    top,
    looseTop,
  };
}

/** Height of a row in pixels: tall for 6 layers, still readable for 80. */
export function cellHeight(rows: number): number {
  return Math.round(Math.min(24, Math.max(9, 420 / Math.max(1, rows))));
}

/** Room for the longest column head, written upright. */
export function headHeight(grid: LayerGrid): number {
  const longest = Math.max(4, ...grid.modules.map((m) => m.label.length));
  return Math.min(110, Math.round(longest * 6) + 8);
}
