/** What came of factoring H: the damping it took, and what had to be put right. */
export interface FactorFacts {
  /** λ of H + λ · mean(diag H) · I that was factored: 0.01, or ten times as much per retry. */
  damping: number;
  /** Factorings that failed before, summed over blocks. */
  retries: number;
  /** Inputs that were zero for every token (H_jj = 0). */
  dead: number;
  /** No damping up to 1 gave a factor, and the diagonal of H was used in place of H. */
  fellBackToDiagonal: boolean;
}
