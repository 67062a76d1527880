/** Rows of a dataset with all their columns. */

export type RowValue = string | number | boolean | null | RowValue[] | { [field: string]: RowValue };

/** One row by the names of its columns. */
export type Row = Record<string, RowValue>;
