/** Reports of calibration: running the models, selecting changes, solving, searching for λ. */

/** Report of the calibration of a merge. */
export interface CalibrationReport {
  importance?: ImportanceReport;
  lambda?: LambdaReport;
  imatrix?: ImatrixReport;
}

/** Report of the importance matrix that weighed the columns of a GGUF file. */
export interface ImatrixReport {
  /** Text that the merged model read, in words. */
  text: string;
  tokens: number;
  /** True for one that was measured before. */
  reused: boolean;
  seconds: number;
}

export interface ImportanceReport {
  /** `selection`: masks of what stays of each contributor. `solution`: merged changes (Gram merge). */
  kind: 'selection' | 'solution';
  contributors: {
    id: string;
    /** Calibration text, in words. */
    calibration: string;
    /** sha256 of what determines the text, and of the files its weights come from. */
    calibrationSha256: string;
    modelSha256: string;
    /** Tokens it wrote itself, and tokens that went through it to measure its inputs: 0 when all was there already. */
    writtenTokens: number;
    forwardTokens: number;
  }[];
  /** Tensors computed now, and those found in the cache. */
  computed: number;
  reused: number;
  /** Bytes it all takes in the browser's storage. */
  bytes: number;
  /** Most bytes held on the device at once; 0 when nothing was computed. */
  peakBytes: number;
  seconds: number;
  /** Deviations from the usual, in sentences: damping, dead inputs, matrices in blocks. */
  notes: string[];
}

export interface LambdaReport {
  chosen: number;
  /** Every λ tried, ascending, with the geometric mean of the contributors' perplexities, and each of them. */
  curve: { lambda: number; perplexity: number; each: number[] }[];
  /** Texts that the merges were measured on, one per contributor, in words. */
  texts: { id: string; calibration: string; tokens: number }[];
  /** True for one that was found before, with the same models and settings. */
  reused: boolean;
  seconds: number;
}

/** A stored set of masks or solved task vectors, in the cache. */
export interface MaskInfo {
  id: string;
  /** Models and settings in words. */
  title: string;
  bytes: number;
  tensors: number;
}

/** A text, or its token ids where no tokenizer is to be used. */
export type CalibrationText = string | readonly number[];
