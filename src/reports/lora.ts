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
  /** After merging the written adapter into the base: over all that differs. */
  merged: {
    /** ‖finetuned − merged‖ / ‖Δ‖ */
    error: number;
    /** Null where nothing was merged. */
    maxError: number | null;
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
  const share = formatPercent(Math.max(0, 1 - error ** 2));
  if (error < POOR) return [`At ${span} the LoRA keeps ${share} of the change (‖Δ‖²).`];
  const why =
    rank.kind === 'rank' || rank.kind === 'bytes'
      ? 'this change is not of so low a rank'
      : 'this change is not low-rank';
  return [
    `At ${span} the LoRA leaves ${formatPercent(error)} of the difference (‖Δ‖; ${share} of ‖Δ‖² is kept): ${why}.`,
  ];
}

// ---------------------------------------------------------------- what a change is made of, before a rank is chosen

export interface MeasuredModule {
  module: string;
  kind: 'linear' | 'embedding';
  /** [outputs, inputs] of a LoRA, else the shape as it is stored. */
  shape: number[];
  /** Rank and scale as a LoRA has them; null where the change is a difference. */
  rank: number | null;
  scale: number | null;
  /** ‖Δ‖² */
  squares: number;
  /** Singular values, descending: all of a LoRA, else as many as were looked for. */
  values: number[];
}

/** Shares of the change that a rank is looked for that keeps them. */
export const SHARES = [0.9, 0.95, 0.99] as const;

/** `95 %` */
export const shareWords = (share: number) => `${Math.round(100 * share)}\u00a0%`;

/** Share of Σ‖Δ‖² that one rank for all modules keeps, from rank 1 on. */
export function keptByRank(modules: readonly Pick<MeasuredModule, 'squares' | 'values'>[]): number[] {
  const most = modules.reduce((length, { values }) => Math.max(length, values.length), 0);
  const all = modules.reduce((sum, { squares }) => sum + squares, 0);
  const gains = new Array<number>(most).fill(0);
  for (const { values } of modules) for (const [i, s] of values.entries()) gains[i]! += s * s;
  let kept = 0;
  return gains.map((gain) => {
    kept += gain;
    return all > 0 ? Math.min(1, kept / all) : 1;
  });
}

/** The least rank for all modules that keeps a share; undefined where none that was looked at does. */
export function rankKeeping(kept: readonly number[], share: number): number | undefined {
  // sums in f32 leave the last digits open
  const at = kept.findIndex((one) => one >= share * (1 - 1e-6));
  return at < 0 ? undefined : at + 1;
}

/** The same of one module; 0 for one that changes nothing. */
export function moduleRank(
  module: Pick<MeasuredModule, 'squares' | 'values'>,
  share: number,
): number | undefined {
  return module.squares === 0 ? 0 : rankKeeping(keptByRank([module]), share);
}

/** The ranks that keep 90, 95 and 99 %, and, where even the largest keeps little, what it means. */
export function curveWords(modules: readonly MeasuredModule[]): string[] {
  const kept = keptByRank(modules);
  if (kept.length === 0) return ['Nothing changes in it.'];
  const found = SHARES.flatMap((share) => {
    const rank = rankKeeping(kept, share);
    return rank === undefined ? [] : [`rank ${rank} keeps ${shareWords(share)}`];
  });
  const most = kept.at(-1) ?? 1;
  const largest = `Rank ${kept.length}, the largest looked at, keeps ${formatPercent(most)} of the change`;
  const words = found.length > 0 ? `${capital(found.join(', '))} of the change.` : `${largest}.`;
  const left = Math.sqrt(1 - most);
  if (left < POOR) return [words];
  return [words, `It leaves ${formatPercent(left)} of the difference: this change is not low-rank.`];
}

function capital(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}
