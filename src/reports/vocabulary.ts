/** The vocabularies of a plan, as plain data that crosses the worker's boundary. */

/** Vocabularies of the models, their differences, and the output's vocabulary. */
export interface VocabularyInfo {
  /** Rows of the embedding and tokens of the tokenizer, where they are known; the base first. */
  models: { ref: string; rows: number | null; tokens: number | null }[];
  /** How the others differ from the first, in sentences; empty where all agree. */
  words: string[];
  /** Source of the output's tokenizer, and its size; `tokens` is null where nothing was changed. */
  output: { from: string; tokens: number | null; rows: number | null };
}
