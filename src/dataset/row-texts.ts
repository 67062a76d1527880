/** The texts of some rows of a column. */
export interface RowTexts {
  /** One for each row that has a value. */
  texts: readonly string[];
  /** For each row 1 where it has a value, else 0; absent where all have. */
  present?: Uint32Array;
}
