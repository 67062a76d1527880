/** The vocabularies of a plan, as facts that cross the worker's boundary. */

/** Who has which vocabulary, how they differ, what the output has. */
export interface VocabularyInfo {
  /** Rows of the embedding and tokens of the tokenizer, where they are known; the base first. */
  models: { ref: string; rows: number | null; tokens: number | null }[];
  /** How the others differ from the first, in sentences; empty where all agree. */
  words: string[];
  /** Whose tokenizer the output takes, and its size; `tokens` is null where nothing was changed. */
  output: { from: string; tokens: number | null; rows: number | null };
}
