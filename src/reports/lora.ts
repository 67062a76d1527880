/** What is reported of a change that was cut to a LoRA: plain data for the worker boundary, and the verdict in words. */
import { formatPercent } from '../formats/quantity';

/** Choice of the rank of each module. */
export type RankChoice =
  | { kind: 'rank'; rank: number }
  /** Smallest rank with Σσ² ≥ share · ‖Δ‖². */
  | { kind: 'energy'; share: number }
  /** All σᵢ ≥ ratio · σ₁. */
  | { kind: 'cutoff'; ratio: number }
  /** Ranks that capture most of Σσ² in so many bytes of adapter weights. */
  | { kind: 'bytes'; bytes: number };

/** A module of the adapter with its factors. */
export interface ExtractedModule {
  /** Path as PEFT names it. */
  module: string;
  kind: 'linear' | 'embedding';
  /** Shape of the stored weight. */
  shape: number[];
  rank: number;
  /** Smaller side: the rank at which nothing is lost. */
  fullRank: number;
  normDelta: number;
  /** The largest singular values, descending, at most 64. */
  singularValues: number[];
  /** Decomposed exactly, not by a random sketch. */
  exact: boolean;
  /** ‖finetuned − (base + B·A)‖ / ‖Δ‖ of the written adapter merged in f32; null where the merge is not finite. */
  error: number | null;
  /** Largest |finetuned − (base + B·A)|, null likewise. */
  maxError: number | null;
}

export interface CutReport {
  rank: RankChoice;
  modules: ExtractedModule[];
  /** Tensors the adapter carries whole. */
  saved: { name: string; shape: number[]; bytes: number }[];
  /** Changes the adapter does not carry, and why. */
  left: { name: string; normDelta: number | null; why: string }[];
  /** After merging the written adapter into the base: over all tensors both models have. */
  merged: {
    /** ‖finetuned − merged‖ / ‖Δ‖ */
    error: number;
    /** ‖finetuned − merged‖ / ‖finetuned‖ */
    relative: number;
    maxError: number;
    /** Tensors whose merge is not finite, which count in none of these. */
    failed: { name: string; message: string }[];
  };
  parameters: number;
  /** Other remarks, as sentences. */
  notes: string[];
}

/** What is left of the difference from which on a LoRA is a poor copy of it. */
const POOR = 0.5;

/** How much of the change a LoRA keeps, and, where that is little, what it means. */
export function cutWords({
  rank,
  modules,
  merged: { error },
}: Pick<CutReport, 'rank' | 'modules' | 'merged'>): string[] {
  const ranks = modules.map((m) => m.rank);
  const [least, most] = [Math.min(...ranks), Math.max(...ranks)];
  const span = least === most ? `rank ${most}` : `ranks ${least} to ${most}`;
  const kept = `At ${span} the LoRA keeps ${formatPercent(Math.max(0, 1 - error ** 2))} of the change (‖Δ‖²).`;
  if (error < POOR) return [kept];
  const why =
    rank.kind === 'rank' || rank.kind === 'bytes'
      ? 'this change is not of so low a rank'
      : 'this change is not low-rank';
  return [kept, `It leaves ${formatPercent(error)} of the difference: ${why}.`];
}
